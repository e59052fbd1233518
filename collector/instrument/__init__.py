"""The instrument for a person in a notebook; docs/instrument.md says how to use it.

    from collector.instrument import bench_kernel, measure

Nothing here is needed to run ``collect``. Importing it loads neither torch nor CUPTI.
"""

from collector.errors import (
    AttributionError,
    CollectorError,
    MachineError,
    MixedTimersError,
    OffThreadLaunchError,
    RecordsLostError,
)
from collector.instrument.backward import backward_of
from collector.instrument.comparing import Compared, Comparison, compare
from collector.instrument.kernels import bench_kernel
from collector.instrument.measuring import measure
from collector.instrument.policies import (
    ClockPolicy,
    HeldClockPolicy,
    LockedClockPolicy,
    UnlockedClockPolicy,
    VerifyClockPolicy,
)
from collector.instrument.results import MeasurementTier, Sample, TimingResult
from collector.window import Budget

# The three under the names that readers of "How a benchmark is timed" know.
_CUPTIRecordsLostError = RecordsLostError
_OffThreadLaunchError = OffThreadLaunchError
_CUPTIAttributionError = AttributionError

__all__ = [
    "AttributionError",
    "Budget",
    "ClockPolicy",
    "CollectorError",
    "Compared",
    "Comparison",
    "HeldClockPolicy",
    "LockedClockPolicy",
    "MachineError",
    "MeasurementTier",
    "MixedTimersError",
    "OffThreadLaunchError",
    "RecordsLostError",
    "Sample",
    "TimingResult",
    "UnlockedClockPolicy",
    "VerifyClockPolicy",
    "backward_of",
    "bench_kernel",
    "compare",
    "measure",
]
