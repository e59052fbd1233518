"""History as git tells it: the only place that runs git for it.

Git is started with a fixed language, without prompts, and blind to the variables that a
hook sets to point it elsewhere. Commits are read as they are stored, so that the parents
which a shallow clone hides are still known by name.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import GitError, NoRepository, UnknownRevision
from store.git_names import repository_name
from store.git_objects import parsed_commits
from store.records import SHA_PATTERN, GitTag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import Commit

HISTORY_LIMIT = 500
REMOTE = "origin"
_TIMEOUT_S = 120
_FETCH_TIMEOUT_S = 3600
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
_SHALLOW_REMEDY = (
    "this clone is shallow, so that the line of commits and the merge-base are not known for sure: "
    "add --deepen, run 'git fetch --unshallow', or set 'fetch-depth: 0' for actions/checkout"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHistory:
    """What git knows about the code that is measured; the fields are those of a run.

    Attributes:
        repository: see ``RunHeader.repository``; the folder's name where there is no repository.
        history: the commit and its first parents, newest first, then the merge-base's line
            where it is another one.
        history_note: why the history is not known in full and what to do, or None.
        git_tags: the tags on these commits, by commit as in ``history``, then by name.
    """

    repository: str
    commit_sha: str | None
    dirty: bool
    base_ref: str | None
    merge_base: str | None
    history: tuple[Commit, ...]
    history_note: str | None
    git_tags: tuple[GitTag, ...] = ()


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
    base = repository.default_branch() if base_ref is None else repository.base(base_ref)
    merge_base = None if base is None else repository.departure(sha, base)
    history = _history(repository, sha, merge_base, limit)
    return MeasuredHistory(
        repository=repository.name(),
        commit_sha=sha,
        dirty=sha == head and repository.is_dirty(),
        base_ref=base,
        merge_base=merge_base,
        history=history,
        history_note=_note(base, merge_base, shallow=repository.is_shallow()),
        git_tags=repository.tags_on(commit.sha for commit in history),
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
        (commit,) = self.commits([self.resolve(sha)])
        return commit

    def commits(self, shas: Sequence[str]) -> list[Commit]:
        """The commits with these full ids, in their order.

        Raises:
            GitError: one of them is not here.
        """
        if not shas:
            return []
        done = self._start("cat-file", "--batch", standard_input="\n".join(shas).encode() + b"\n")
        if done.returncode != 0:
            raise GitError(_words(done.stderr.decode(errors="replace"), self.path))
        return list(parsed_commits(done.stdout))

    def first_parent_line(self, sha: str, limit: int) -> list[Commit]:
        """The commit and its first parents, newest first, at most ``limit``.

        A shallow clone ends the line early; the parent of its last commit then shows that
        there is more.
        """
        return self.commits(self._lines("rev-list", "--first-parent", f"--max-count={limit}", sha, "--"))

    def tags_on(self, shas: Iterable[str]) -> tuple[GitTag, ...]:
        """The tags on commits with these full ids, in their order, then by name."""
        done = self._run("show-ref", "--tags", "--dereference")
        if done.returncode == 1 and not done.stderr.strip():
            return ()  # there is no tag at all
        found: dict[str, str] = {}
        for line in self._checked(done).splitlines():
            sha, _, name = line.partition(" ")
            # An annotated tag comes twice, the second time with what it points at in the end.
            found[name.removeprefix("refs/tags/").removesuffix("^{}")] = sha
        place = {sha: index for index, sha in enumerate(shas)}
        on_them = [(place[sha], name, sha) for name, sha in found.items() if sha in place]
        return tuple(GitTag(name=name, commit_sha=sha) for _, name, sha in sorted(on_them))

    def first_parents(self, sha: str) -> list[str]:
        """Ids of the commit and of all its first parents that are here, newest first."""
        return self._lines("rev-list", "--first-parent", sha, "--")

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether ``newer`` holds the commit ``older``, as far as the clone reaches."""
        return self.merge_base(older, newer) == self.resolve(older)

    def only_in(self, newer: str, older: str) -> set[str]:
        """Ids of the commits that ``newer`` holds and ``older`` does not, on whatever line."""
        return set(self._lines("rev-list", newer, f"^{older}", "--"))

    def has_path(self, sha: str, path: str) -> bool:
        """Whether a commit holds a file or folder at a path from the top, such as ``benches/mlp.py``."""
        return self._run("cat-file", "-e", f"{sha}:{path}").returncode == 0

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
        base_line = set(self.first_parents(self.resolve(base_ref)))
        return next((commit for commit in self.first_parents(sha) if commit in base_line), None)

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

    def base(self, name: str) -> str:
        """The branch to judge against, under the name by which it is known here.

        A checkout in CI has no branches of its own: there ``main`` is known as ``origin/main``.

        Raises:
            UnknownRevision: it is not known under either name.
        """
        remote = f"{REMOTE}/{name}"
        if self._sha(name) is None and self._sha(remote) is not None:
            return remote
        self.resolve(name)
        return name

    def deepen(self, base_ref: str | None = None) -> bool:
        """Fetch the commits that a shallow clone lacks, and the base branch where it is not here.

        Trees and files of the older commits stay on the server where it can do that; git fetches
        them when they are needed. Without anything to fetch nothing is done.

        Args:
            base_ref: the branch to judge against; by default the remote's main branch.

        Returns:
            Whether something was fetched.

        Raises:
            GitError: there is no remote ``origin``, or it could not be reached.
        """
        known = self.default_branch() if base_ref is None else self._sha(base_ref)
        if known is not None and not self.is_shallow():
            return False
        branch = self._default_of_remote() if base_ref is None else base_ref.removeprefix(f"{REMOTE}/")
        tracking = f"refs/remotes/{REMOTE}/{branch}"
        shallow = ("--unshallow", "--filter=tree:0") if self.is_shallow() else ()
        wanted = branch if SHA_PATTERN.fullmatch(branch) else f"+refs/heads/{branch}:{tracking}"
        fetched = self._start("fetch", "--quiet", *shallow, REMOTE, wanted, limit_s=_FETCH_TIMEOUT_S)
        if fetched.returncode != 0:
            raise GitError(_words(fetched.stderr.decode(errors="replace"), self.path))
        if base_ref is None:
            self._git("symbolic-ref", f"refs/remotes/{REMOTE}/HEAD", tracking)
        return True

    def _default_of_remote(self) -> str:
        listed = self._git("ls-remote", "--symref", REMOTE, "HEAD")
        found = re.search(r"^ref: refs/heads/(\S+)\s+HEAD$", listed, re.MULTILINE)
        if found is None:
            raise GitError(f"{REMOTE} names no main branch: say which one to judge against with --base")
        return found[1]

    def _sha(self, revision: str) -> str | None:
        if revision.startswith("-"):  # git would take it for an option
            return None
        found = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").stdout.strip()
        return found if SHA_PATTERN.fullmatch(found) else None  # a range gives two

    def _lines(self, *arguments: str) -> list[str]:
        return self._git(*arguments).split()

    def _git(self, *arguments: str) -> str:
        return self._checked(self._run(*arguments))

    def _checked(self, done: subprocess.CompletedProcess[str]) -> str:
        if done.returncode == 0:
            return done.stdout
        if "not a git repository" in done.stderr:
            raise NoRepository(
                f"{self.path} lies in no git repository: name the folder of a checkout, or run 'git init'"
            )
        raise GitError(_words(done.stderr, self.path))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self._start(*arguments)
        return subprocess.CompletedProcess(
            done.args,
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="replace"),
        )

    def _start(
        self, *arguments: str, standard_input: bytes = b"", limit_s: float = _TIMEOUT_S
    ) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in REDIRECTING_VARIABLES}
        command = ["git", "-C", str(self.path), "-c", "core.fsmonitor=false", *arguments]
        try:
            return subprocess.run(
                command,
                input=standard_input,
                capture_output=True,
                check=False,
                timeout=limit_s,
                env=environment | _SETTINGS,
            )
        except FileNotFoundError:
            raise GitError(
                "git is not installed, or not on PATH: install it to know what is measured"
            ) from None
        except subprocess.TimeoutExpired:
            raise GitError(f"'git {arguments[0]}' in {self.path} took longer than {limit_s:g} s") from None


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
        return (
            "no main branch was found (origin/HEAD, main or master): name the branch to judge against "
            "with --base, or add --deepen to fetch it"
        )
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
