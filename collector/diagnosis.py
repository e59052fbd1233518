"""Whether a machine can measure, and at which tier: pure.

The tier is the best that can be reached; a measurement still has to earn it (collector/tiers.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.findings import Finding, Level, Readings
from collector.gpu_findings import gpu_findings
from collector.host_findings import host_findings
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.protocol import JsonReading

_WORST_FIRST = (Level.PROBLEM, Level.WARNING, Level.FINE)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, and what follows from them.

    Attributes:
        timer: what `collect` would time with.
    """

    timer: str
    findings: tuple[Finding, ...]

    @property
    def can_measure(self) -> bool:
        """Whether `collect` would give numbers."""
        return all(finding.level is not Level.PROBLEM for finding in self.findings)

    @property
    def best_tier(self) -> Tier | None:
        """The best tier a measurement can reach; None where nothing can be measured."""
        if not self.can_measure:
            return None
        return max((finding.limit for finding in self.findings if finding.limit), default=Tier.A)


def diagnose(readings: Mapping[str, JsonReading], *, timer: str) -> Diagnosis:
    """Judge what a machine said about itself.

    Args:
        readings: of ``collector.examination`` and ``collector.doctor``, by dotted name; the
            context of a stored run will do.
        timer: as asked for: a timer's name, or ``auto``.
    """
    known = Readings(readings)
    has_gpu = bool(known.value("gpu.found") or known.value("gpu.uuid"))
    chosen = ("cupti" if has_gpu else "wall") if timer == "auto" else timer
    findings = [*host_findings(known, has_gpu=has_gpu), *gpu_findings(known, timer=chosen, has_gpu=has_gpu)]
    return Diagnosis(chosen, tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.level))))
