"""The lists of runs that verdicts rest on: each is stored once, under an id made from what it holds.

Nearly all verdicts of a run rest on the same twenty runs, whose ids would otherwise be most of
what a verdict takes to write.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from store.rows import insert_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

VERDICTS_WITH_LISTS = """
select verdicts.*, baseline_runs.run_ids as baseline_run_ids, drift_runs.run_ids as drift_run_ids
from verdicts
left join run_lists as baseline_runs on baseline_runs.list_id = verdicts.baseline_list
left join run_lists as drift_runs on drift_runs.list_id = verdicts.drift_list
"""
_KNOWN = "select list_id from run_lists where list_id in (select unnest(?))"
_FORGET = """
delete from run_lists
where list_id not in (select baseline_list from verdicts)
    and list_id not in (select drift_list from verdicts where drift_list is not null)
"""


@lru_cache(maxsize=4096)
def list_id(run_ids: tuple[str, ...]) -> str:
    """Sixteen hexadecimal digits that stand for a list, in every store."""
    return hashlib.sha256(",".join(run_ids).encode()).hexdigest()[:16]


def insert_lists(connection: duckdb.DuckDBPyConnection, lists: Iterable[tuple[str, ...]]) -> None:
    """Add the lists that the store does not know yet."""
    found = {list_id(run_ids): run_ids for run_ids in lists}
    known = {known for (known,) in connection.execute(_KNOWN, [list(found)]).fetchall()}
    fresh = [{"list_id": key, "run_ids": ids} for key, ids in found.items() if key not in known]
    insert_rows(connection, "run_lists", fresh)


def forget_unused_lists(connection: duckdb.DuckDBPyConnection) -> None:
    """Remove the lists that no verdict rests on any more."""
    connection.execute(_FORGET)
