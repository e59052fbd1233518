"""Several implementations of one workload: how they are recognised, for workers and their parent.

Cases that differ in the parameter ``implementation`` alone are one workload. They are measured
in turn within each pass, and the first that the suite names is the subject that the others are
compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

PARAMETER = "implementation"


def workload(name: str, parameters: Mapping[str, Any], key: str) -> object:
    """What implementations of one workload have in common; a case without others stands alone."""
    if PARAMETER not in parameters:
        return key
    return name, tuple(sorted((k, repr(v)) for k, v in parameters.items() if k != PARAMETER))
