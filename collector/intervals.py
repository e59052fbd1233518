"""Folding, under the name by which the collector's users know it.

The method itself lives in ``store.folding``, because stored history is folded again there
when the method improves, and the store imports no sibling.
"""

from store.folding import CONFIDENCE, FOLD_VERSION, WINDOWS_MIN, WINDOWS_MIN_PROVISIONAL, fold_windows

__all__ = ["CONFIDENCE", "FOLD_VERSION", "WINDOWS_MIN", "WINDOWS_MIN_PROVISIONAL", "fold_windows"]
