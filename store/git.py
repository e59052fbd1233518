"""History as git tells it: the only place that runs git for it.

Git is started with a fixed language, without prompts, and blind to the variables that a
hook sets to point it elsewhere. Commits are read as they are stored, so that the parents
which a shallow clone hides are still known by name.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from store.errors import GitError, NoRepository, UnknownRevision
from store.records import SHA_PATTERN, Commit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HISTORY_LIMIT = 500
_TIMEOUT_S = 120
REDIRECTING_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
)
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # looking at the tree does not write to it
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit id stands for what it was made from
}
# Files that kernelwatch itself leaves in a working tree say nothing about the code in it.
_OWN_SUFFIXES = (".duckdb", ".duckdb.wal", ".kernelwatch.gz")
_OWN_FOLDER = ".kernelwatch"
_SUBJECT_LENGTH_MAX = 1000
_SHALLOW_REMEDY = (
    "this clone is shallow, so that the line of commits and the merge-base are not known for sure: "
    "run 'git fetch --unshallow', or set 'fetch-depth: 0' for actions/checkout"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHistory:
    """What git knows about the code that is measured; the fields are those of a run.

    Attributes:
        repository: see ``RunHeader.repository``; the folder's name where there is no repository.
        history: the commit and its first parents, newest first, then the merge-base's line
            where it is another one.
        history_note: why the history is not known in full and what to do, or None.
    """

    repository: str
    commit_sha: str | None
    dirty: bool
    base_ref: str | None
    merge_base: str | None
    history: tuple[Commit, ...]
    history_note: str | None


def measured_history(
    path: Path, revision: str, *, base_ref: str | None = None, limit: int = HISTORY_LIMIT
) -> MeasuredHistory:
    """What to store about the commit that is measured.

    Args:
        path: a folder of the working tree that is measured. A revision that is measured in
            a worktree of its own is asked for there, as HEAD.
        revision: what is measured; where it is the tree's HEAD, the tree may be dirty.
        base_ref: the branch it is judged against; by default the repository's main branch.
        limit: at most so many commits of either line.

    Raises:
        UnknownRevision: the revision, or the base that was asked for, is not known here.
        GitError: git is missing, refuses the repository, or failed.
    """
    try:
        repository = Repository(path)
    except NoRepository:
        if revision != "HEAD":
            raise
        note = f"{path.resolve().name} lies in no git repository: put the code into one to follow its history"
        return _without_commit(path.resolve().name, dirty=False, note=note)
    head = repository.head()
    if head is None and revision == "HEAD":
        note = "the repository has no commit yet: commit the code to follow its history"
        return _without_commit(repository.name(), dirty=repository.is_dirty(), note=note)
    sha = repository.resolve(revision)
    base = base_ref or repository.default_branch()
    merge_base = None if base is None else repository.departure(sha, base)
    return MeasuredHistory(
        repository=repository.name(),
        commit_sha=sha,
        dirty=sha == head and repository.is_dirty(),
        base_ref=base,
        merge_base=merge_base,
        history=_history(repository, sha, merge_base, limit),
        history_note=_note(base, merge_base, shallow=repository.is_shallow()),
    )


class Repository:
    """A git repository, seen from one of its folders.

    Args:
        path: any folder of a working tree.

    Raises:
        NoRepository: the folder lies in no repository.
        GitError: there is no such folder, git is missing, or git refuses the repository
            (because it belongs to somebody else, for one).
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if not self.path.is_dir():
            raise GitError(f"{path} is no folder: name the folder of a working tree")
        self._git("rev-parse", "--git-dir")

    def head(self) -> str | None:
        """The id of the commit that is checked out, on a branch or not; None before the first commit."""
        return self._sha("HEAD")

    def resolve(self, revision: str) -> str:
        """The full id of the commit that ``revision`` names.

        Raises:
            UnknownRevision: there is no such commit here.
        """
        sha = self._sha(revision)
        if sha is None:
            remedy = _SHALLOW_REMEDY if self.is_shallow() else "check the name, or run 'git fetch'"
            raise UnknownRevision(f"{self.path.name} has no commit {revision!r}: {remedy}")
        return sha

    def commit(self, sha: str) -> Commit:
        """The commit with this full id.

        Raises:
            UnknownRevision: there is no such commit here.
        """
        (commit,) = self._commits([self.resolve(sha)])
        return commit

    def first_parent_line(self, sha: str, limit: int) -> list[Commit]:
        """The commit and its first parents, newest first, at most ``limit``.

        A shallow clone ends the line early; the parent of its last commit then shows that
        there is more.
        """
        return self._commits(self._lines("rev-list", "--first-parent", f"--max-count={limit}", sha, "--"))

    def merge_base(self, a: str, b: str) -> str | None:
        """The best common ancestor of two commits; None where none is known."""
        done = self._run("merge-base", self.resolve(a), self.resolve(b))
        if done.returncode == 1 and not done.stderr.strip():
            return None
        return self._checked(done).strip()

    def departure(self, sha: str, base_ref: str) -> str | None:
        """Where the line of ``sha`` left that of ``base_ref``; ``sha`` itself where it is on it.

        For a branch that is not merged this is the merge-base. A branch that was merged is
        an ancestor of the base as a whole; then it is the last commit of both first-parent lines.
        """
        merge_base = self.merge_base(sha, base_ref)
        if merge_base != sha:
            return merge_base
        base_line = set(self._lines("rev-list", "--first-parent", self.resolve(base_ref), "--"))
        own_line = self._lines("rev-list", "--first-parent", sha, "--")
        return next((commit for commit in own_line if commit in base_line), None)

    def is_shallow(self) -> bool:
        """Whether older commits were left out when the repository was cloned."""
        return self._git("rev-parse", "--is-shallow-repository").strip() == "true"

    def is_dirty(self) -> bool:
        """Whether tracked files differ from HEAD, or files lie about that are neither tracked nor ignored."""
        listed = self._git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        return any(entry and not _is_own(entry) for entry in listed.split("\0"))

    def name(self) -> str:
        """``host/owner/name`` of the origin, without credentials; else the name of the main folder."""
        origin = self._run("remote", "get-url", "origin")
        if origin.returncode == 0 and (name := repository_name(origin.stdout.strip())):
            return name
        shared = (self.path / self._git("rev-parse", "--git-common-dir").strip()).resolve()
        if shared.name == ".git":  # the same for every worktree of the repository
            return shared.parent.name
        if shared.suffix == ".git":
            return shared.stem
        return Path(self._git("rev-parse", "--show-toplevel").strip()).name

    def default_branch(self) -> str | None:
        """The branch that others start from: where origin/HEAD points, else main, else master."""
        pointer = self._run("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD").stdout.strip()
        candidates = (pointer, "origin/main", "main", "origin/master", "master")
        return next((name for name in candidates if name and self._sha(name)), None)

    def _sha(self, revision: str) -> str | None:
        if revision.startswith("-"):  # git would take it for an option
            return None
        found = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").stdout.strip()
        return found if SHA_PATTERN.fullmatch(found) else None  # a range gives two

    def _commits(self, shas: Sequence[str]) -> list[Commit]:
        if not shas:
            return []
        done = self._start("cat-file", "--batch", standard_input="\n".join(shas).encode() + b"\n")
        if done.returncode != 0:
            raise GitError(_words(done.stderr.decode(errors="replace"), self.path))
        return list(_parsed_commits(done.stdout))

    def _lines(self, *arguments: str) -> list[str]:
        return self._git(*arguments).split()

    def _git(self, *arguments: str) -> str:
        return self._checked(self._run(*arguments))

    def _checked(self, done: subprocess.CompletedProcess[str]) -> str:
        if done.returncode == 0:
            return done.stdout
        if "not a git repository" in done.stderr:
            raise NoRepository(f"{self.path} lies in no git repository")
        raise GitError(_words(done.stderr, self.path))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self._start(*arguments)
        return subprocess.CompletedProcess(
            done.args,
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="replace"),
        )

    def _start(self, *arguments: str, standard_input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in REDIRECTING_VARIABLES}
        command = ["git", "-C", str(self.path), "-c", "core.fsmonitor=false", *arguments]
        try:
            return subprocess.run(
                command,
                input=standard_input,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
                env=environment | _SETTINGS,
            )
        except FileNotFoundError:
            raise GitError(
                "git is not installed, or not on PATH: install it to know what is measured"
            ) from None
        except subprocess.TimeoutExpired:
            raise GitError(f"'git {arguments[0]}' in {self.path} took longer than {_TIMEOUT_S} s") from None


def repository_name(url: str) -> str | None:
    """``host/owner/name`` for the address of a repository; its last part for a local path.

    Scheme, user, password, port and ``.git`` are dropped: the same repository has the same
    name however it was cloned, and no credential reaches the store.
    """
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        before, colon, after = url.partition(":")
        is_remote = bool(colon) and "/" not in before
        host, path = (before.rpartition("@")[2].lower(), after) if is_remote else ("", url)
    names = [name for name in path.split("/") if name not in ("", ".", "..", "~")]
    if not names:
        return None
    names[-1] = names[-1].removesuffix(".git") or names[-1]
    return "/".join([host, *names]) if host else names[-1]


def _without_commit(name: str, *, dirty: bool, note: str) -> MeasuredHistory:
    return MeasuredHistory(
        repository=name, commit_sha=None, dirty=dirty, base_ref=None, merge_base=None, history=(),
        history_note=note,
    )  # fmt: skip


def _history(repository: Repository, sha: str, merge_base: str | None, limit: int) -> tuple[Commit, ...]:
    history = {commit.sha: commit for commit in repository.first_parent_line(sha, limit)}
    if merge_base is not None and merge_base not in history:
        for commit in repository.first_parent_line(merge_base, limit):
            if commit.sha in history:
                break
            history[commit.sha] = commit
    return tuple(history.values())


def _note(base: str | None, merge_base: str | None, *, shallow: bool) -> str | None:
    if shallow:
        return _SHALLOW_REMEDY
    if base is None:
        return "no main branch was found (origin/HEAD, main or master): name the branch to judge against"
    if merge_base is None:
        return f"the commit and {base} have no common ancestor: name another branch to judge against"
    return None


def _is_own(entry: str) -> bool:
    """Whether a line of ``git status`` is about an untracked file of kernelwatch's own."""
    status, file = entry[:2], Path(entry[3:])
    return status == "??" and (file.name.endswith(_OWN_SUFFIXES) or _OWN_FOLDER in file.parts)


def _words(stderr: str, path: Path) -> str:
    said = " ".join(stderr.split()) or "it gave no reason"
    return f"git failed in {path}: {said}"


def _parsed_commits(output: bytes) -> Iterable[Commit]:
    """The commits in the output of ``git cat-file --batch``."""
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
