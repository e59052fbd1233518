"""The older names that the benchmarks of stored runs had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.older_names import Renames
from store.renames import load_benchmark_names, load_renames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database


def renames_of_runs(database: Database, repository: str, run_ids: Sequence[str]) -> dict[str, Renames]:
    """How each run has to be read, by run id; nothing where no benchmark was ever renamed.

    Args:
        database: the store.
        repository: the repository of all these runs.
        run_ids: the runs. What one of them still measures under an old name was not given up in it.
    """
    declared = load_renames(database, repository)
    if not declared:
        return {}
    names = load_benchmark_names(database, run_ids)
    return {run_id: Renames.of(declared, names.get(run_id, ())) for run_id in run_ids}
