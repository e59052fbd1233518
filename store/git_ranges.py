"""Ranges of commits along first parents: what a search for a commit goes through."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from store.errors import GitError

if TYPE_CHECKING:
    from store.git import Repository
    from store.records import Commit

_SHORT = 9


def commits_between(repository: Repository, older: str, newer: str) -> list[Commit]:
    """The commits after ``older`` up to ``newer`` on the latter's line of first parents, oldest first.

    Args:
        repository: the clone that holds both.
        older: a revision on that line.
        newer: a revision.

    Raises:
        UnknownRevision: one of them is not known here.
        GitError: ``older`` is not on the line; the message says where the two meet.
    """
    old, new = repository.resolve(older), repository.resolve(newer)
    line = repository.first_parents(new)
    if old not in line:
        raise GitError(_why_not_on_line(repository, (older, old), (newer, new), set(line)))
    return repository.commits(line[: line.index(old)])[::-1]


def merged_line(repository: Repository, merge: Commit) -> list[tuple[str, list[Commit]]]:
    """What a merge brought in, branch by branch.

    Returns:
        For each parent but the first: where its line left what was there before, and the
        commits from there to that parent, oldest first. Parents that brought nothing, or whose
        beginning is not known here, are left out.
    """
    brought: list[tuple[str, list[Commit]]] = []
    for tip in merge.parents[1:]:
        fresh = repository.only_in(tip, merge.parents[0])
        line = repository.first_parents(tip)
        own = list(takewhile(fresh.__contains__, line))
        if own and len(own) < len(line):
            brought.append((line[len(own)], repository.commits(own)[::-1]))
    return brought


def _why_not_on_line(
    repository: Repository, older: tuple[str, str], newer: tuple[str, str], line: set[str]
) -> str:
    (old_name, old), (new_name, new) = older, newer
    said = f"{old_name} ({old[:_SHORT]}) is not on the line of first parents of {new_name} ({new[:_SHORT]})"
    if repository.is_shallow():
        return f"{said}, as far as this shallow clone reaches: add --deepen, or run 'git fetch --unshallow'"
    if repository.is_ancestor(new, old):
        return f"{said}, but comes after it: name the older commit first"
    met = next((sha for sha in repository.first_parents(old) if sha in line), None)
    if met is None:
        return f"{said}, and the two have no commit in common"
    return f"{said}; their lines part at {met[:_SHORT]}: begin there"
