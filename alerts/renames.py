"""Renames as the judge's modules import them; they live in the store, where the collector uses them too."""

from store.older_names import NO_RENAMES, Renames

__all__ = ["NO_RENAMES", "Renames"]
