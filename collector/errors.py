"""What can go wrong while measuring.

    CollectorError
    ├── SuiteError              (collector.suite) a suite or one of its benchmarks cannot be measured
    ├── MachineError            the machine cannot measure as asked
    │   ├── GpuNotFoundError    no such GPU
    │   ├── TelemetryError      NVML is not there
    │   ├── CuptiError          CUPTI is not there, or is used by somebody else
    │   └── ClocksError         the clocks are not as asked
    │       └── ClocksNotRestoredError  nor could they be put back as they were
    ├── TimingError             a window gave no trustworthy number
    │   ├── RecordsLostError    CUPTI dropped records
    │   ├── CorruptRecordError  a record's times cannot be
    │   ├── ForeignDeviceError  work ran on another device
    │   ├── AttributionError    work cannot be given to an iteration
    │   │   └── OffThreadLaunchError  a thread without an iteration number launched it
    │   ├── DisturbedIterationError   compilation, loading or allocation inside an iteration
    │   ├── TimerFloorError     the timer read no time at all
    │   └── MixedTimersError    what was to be compared was not timed alike
    ├── CheckoutError           the code to measure cannot be laid out
    ├── WorkerError             a worker could not be started or spoke nonsense
    ├── BaselineError           the baseline of a pair cannot be measured, for one of these two reasons
    ├── StudyError              runs cannot be compared with one another
    └── NothingMeasuredError    the run holds no number

Every message says what happened, where, and what to do next. This module imports the
standard library alone: it is loaded inside worker processes.
"""

from __future__ import annotations

_SHORT = 9  # characters of a commit id that tell it from others, as everywhere


class CollectorError(Exception):
    """Something in the collector could not be done; the message says what to do next."""


class MachineError(CollectorError):
    """The machine cannot measure as asked."""


class GpuNotFoundError(MachineError):
    """The GPU asked for is not there."""


class TelemetryError(MachineError):
    """NVML is not there, or does not answer."""


class CuptiError(MachineError):
    """CUPTI cannot be used in this process."""


class ClocksError(MachineError):
    """The clocks are not, or cannot be made, as asked."""


class ClocksNotRestoredError(ClocksError):
    """Clocks or a power limit that were changed could not be put back."""


class TimingError(CollectorError):
    """A window gave no trustworthy number; nothing of it is used."""


class RecordsLostError(TimingError):
    """CUPTI dropped records: the iterations ran, but the reading is gone."""


class CorruptRecordError(TimingError):
    """A record carries times that cannot be."""


class ForeignDeviceError(TimingError):
    """Work of the call ran on a device that is not the measured one."""


class AttributionError(TimingError):
    """Work cannot be given to an iteration, or an iteration has none."""


class OffThreadLaunchError(AttributionError):
    """A thread that never got an iteration number launched work."""


class DisturbedIterationError(TimingError):
    """Something that belongs to set-up or warm-up happened inside a timed iteration."""


class TimerFloorError(TimingError):
    """The timer read zero or less: the call is below what it can resolve."""


class MixedTimersError(TimingError, RuntimeError):
    """Calls that were to be compared were not timed in the same way."""


class CheckoutError(CollectorError):
    """The code to measure cannot be laid out on disk."""


class WorkerError(CollectorError):
    """A worker process could not be started, or did not speak the protocol."""


class BaselineError(CollectorError):
    """The baseline of a pair cannot be measured, and its commit brings that on itself.

    Attributes:
        sha: the commit.
        why: what is wrong with it.
    """

    def __init__(self, sha: str, why: CollectorError) -> None:
        super().__init__(f"at the baseline, {sha[:_SHORT]}: {why}")
        self.sha = sha
        self.why = why


class StudyError(CollectorError):
    """Runs of the same code cannot be compared with one another."""


class NothingMeasuredError(CollectorError):
    """Not one benchmark gave a number."""
