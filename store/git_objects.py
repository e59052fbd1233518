"""Commits as git stores them: read from the output of ``git cat-file --batch``. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from store.errors import GitError
from store.records import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable

_SUBJECT_LENGTH_MAX = 1000


def parsed_commits(output: bytes) -> Iterable[Commit]:
    """The commits in the output, in the order in which they were asked for.

    Raises:
        GitError: an object is missing, or is no commit.
    """
    rest = output
    while rest:
        heading, _, rest = rest.partition(b"\n")
        sha, kind, *size = heading.decode().split()
        if kind != "commit":
            raise GitError(f"git has no commit {sha} where one was expected ({kind}): run 'git fsck'")
        length = int(size[0])
        yield _parsed_commit(sha, rest[:length])
        rest = rest[length + 1 :]


def _parsed_commit(sha: str, content: bytes) -> Commit:
    head, _, message = content.partition(b"\n\n")
    fields: dict[str, list[bytes]] = {}
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        fields.setdefault(name.decode(errors="replace"), []).append(value)
    encoding = fields.get("encoding", [b"utf-8"])[0].decode("ascii", "replace")
    author, authored_at = _signature(fields.get("author", [b""])[0], encoding)
    _, committed_at = _signature(fields.get("committer", [b""])[0], encoding)
    paragraph = message.lstrip(b"\n").partition(b"\n\n")[0]
    return Commit(
        sha=sha,
        parents=tuple(parent.decode("ascii") for parent in fields.get("parent", [])),
        author=author,
        authored_at=authored_at,
        committed_at=committed_at,
        subject=" ".join(_decoded(paragraph, encoding).split())[:_SUBJECT_LENGTH_MAX],
    )


def _signature(line: bytes, encoding: str) -> tuple[str, datetime]:
    """Name and instant of an author or committer line; 1970 for a time that is none, as in git."""
    who, _, when = line.rpartition(b"> ")
    name = _decoded(who.partition(b"<")[0], encoding).strip()
    try:
        moment = datetime.fromtimestamp(int(when.split()[0]), UTC)
    except (IndexError, ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return name or "unknown", moment


def _decoded(text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding, "replace")
    except LookupError:
        return text.decode("utf-8", "replace")
