"""q-values over everything that was tested on a commit, on every GPU: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from alerts.effects import benjamini_hochberg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Verdict


def with_q_values(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts with their q-values over one another, in their order.

    A verdict without a q-value was no test, as that on a sentinel, and gets none.
    """
    tested = [v.p_value for v in verdicts if v.q_value is not None and v.p_value is not None]
    q_values = iter(benjamini_hochberg(tested))
    return [
        replace(v, q_value=next(q_values)) if v.q_value is not None and v.p_value is not None else v
        for v in verdicts
    ]
