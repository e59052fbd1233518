"""Commits and their order. Order follows first parents, never dates."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from store.errors import StoreInvalid
from store.records import Commit
from store.rows import Row, fetch_rows, from_instant, insert_rows

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    import duckdb

    from store.database import Database

_LOAD = "select * from commits where repository = ?"
_LOAD_SOME = f"{_LOAD} and sha in (select unnest(from_json(?, '[\"VARCHAR\"]')))"


def load_commits(database: Database, repository: str) -> dict[str, Commit]:
    """Every commit of a repository that any run has told the store about, by its id."""
    with database.reading() as connection:
        return read_commits(connection, repository)


def first_parent_line(commits: Mapping[str, Commit], tip: str) -> list[Commit]:
    """The line of first parents from ``tip`` backwards, tip first, as far as it is known."""
    return _line(commits, tip, until=())


def commit_positions(database: Database, repository: str) -> dict[str, int]:
    """Place of every known commit on its line of first parents, oldest first, from 0."""
    return positions(load_commits(database, repository))


def positions(commits: Mapping[str, Commit]) -> dict[str, int]:
    """Place of every commit on its line of first parents, oldest first, from 0.

    Commits of two branches share places after the branches part. Where the known history
    has a gap, nothing relates the pieces on its two sides; they are laid one after the
    other, in the order in which their oldest commits were committed.
    """
    depth: dict[str, int] = {}
    root: dict[str, str] = {}
    for tip in commits:
        line = [commit.sha for commit in _line(commits, tip, until=depth)]
        if not line:
            continue
        parent = next(iter(commits[line[-1]].parents), None)
        first, base = (depth[parent] + 1, root[parent]) if parent in depth else (0, line[-1])
        for place, sha in enumerate(reversed(line), start=first):
            depth[sha] = place
            root[sha] = base
    return _laid_end_to_end(commits, depth, root)


def _line(commits: Mapping[str, Commit], tip: str, *, until: Container[str]) -> list[Commit]:
    """First parents from ``tip`` on, up to what is unknown, in ``until``, or met before."""
    line: dict[str, Commit] = {}
    sha: str | None = tip
    while sha is not None and sha in commits and sha not in until and sha not in line:
        line[sha] = commits[sha]
        sha = next(iter(commits[sha].parents), None)
    return list(line.values())


def _laid_end_to_end(
    commits: Mapping[str, Commit], depth: Mapping[str, int], root: Mapping[str, str]
) -> dict[str, int]:
    longest: dict[str, int] = {}
    for sha, place in depth.items():
        longest[root[sha]] = max(longest.get(root[sha], 0), place + 1)
    offset: dict[str, int] = {}
    total = 0
    for base in sorted(longest, key=lambda sha: (commits[sha].committed_at, sha)):
        offset[base] = total
        total += longest[base]
    return {sha: offset[root[sha]] + place for sha, place in depth.items()}


def merges_of(commits: Mapping[str, Commit]) -> dict[str, list[str]]:
    """By commit, the merges that brought it in: those that have it as a parent other than the first."""
    found: dict[str, list[str]] = {}
    for commit in commits.values():
        for parent in commit.parents[1:]:
            found.setdefault(parent, []).append(commit.sha)
    return found


def read_commits(connection: duckdb.DuckDBPyConnection, repository: str) -> dict[str, Commit]:
    """As ``load_commits``, on a connection that is open."""
    return {row["sha"]: _commit_of(row) for row in fetch_rows(connection, _LOAD, [repository])}


def insert_commits(connection: duckdb.DuckDBPyConnection, repository: str, history: Sequence[Commit]) -> None:
    """Add the commits that the store does not know yet.

    Raises:
        StoreInvalid: a commit is known with other parents. An id stands for one commit, so
            one of the two is false.
    """
    shas = json.dumps([commit.sha for commit in history])
    known = {row["sha"]: _commit_of(row) for row in fetch_rows(connection, _LOAD_SOME, [repository, shas])}
    fresh: dict[str, Commit] = {}
    for commit in history:
        earlier = known.get(commit.sha) or fresh.setdefault(commit.sha, commit)
        if earlier.parents != commit.parents:
            raise StoreInvalid(
                f"commit {commit.sha} of {repository} comes with the parents "
                f"({' '.join(commit.parents)}), and is known with ({' '.join(earlier.parents)}): "
                "one of the two histories is false; measure from a full clone"
            )
    insert_rows(
        connection, "commits", [{"repository": repository, **asdict(commit)} for commit in fresh.values()]
    )


def segments(history: Sequence[Commit]) -> tuple[list[str], list[int]]:
    """A history as pieces of first-parent lines: their tips and their lengths."""
    tips: list[str] = []
    lengths: list[int] = []
    expected: str | None = None
    for commit in history:
        if commit.sha != expected:
            tips.append(commit.sha)
            lengths.append(0)
        lengths[-1] += 1
        expected = commit.parents[0] if commit.parents else None
    return tips, lengths


def from_segments(
    commits: Mapping[str, Commit], tips: Iterable[str], lengths: Iterable[int]
) -> tuple[Commit, ...]:
    """The history that ``segments`` took apart.

    Raises:
        StoreInvalid: a commit of it is not in the store.
    """
    history: list[Commit] = []
    for tip, length in zip(tips, lengths, strict=True):
        line = first_parent_line(commits, tip)[:length]
        if len(line) != length:
            raise StoreInvalid(
                f"the history from {tip} should hold {length} commits, and {len(line)} are known: "
                "run 'store doctor'"
            )
        history += line
    return tuple(history)


def _commit_of(row: Row) -> Commit:
    return Commit(
        sha=row["sha"],
        parents=tuple(row["parents"]),
        author=row["author"],
        authored_at=from_instant(row["authored_at"]),
        committed_at=from_instant(row["committed_at"]),
        subject=row["subject"],
    )
