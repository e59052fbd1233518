"""The code to measure, laid out on disk: this checkout, or a git worktree of another revision."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CheckoutError
from store.git import REDIRECTING_VARIABLES, Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_GIT_LIMIT_S = 600


@contextlib.contextmanager
def checkout(repository: Path, revision: str, sha: str | None) -> Iterator[Path]:
    """The root folder of the code to measure.

    ``HEAD`` is this checkout as it stands, changes included. Any other revision gets a
    worktree of its own (with submodules), which is removed afterwards.

    Args:
        repository: the top folder of a checkout, or any folder where there is no git.
        revision: as the user wrote it.
        sha: what it resolves to.

    Raises:
        CheckoutError: git could not make the worktree.
    """
    if revision == "HEAD" or sha is None:
        yield repository
        return
    with tempfile.TemporaryDirectory(prefix="kernelwatch-") as parent:
        tree = Path(parent) / sha[:12]
        try:
            _git(repository, "worktree", "add", "--detach", "--force", str(tree), sha)
        except BaseException:
            # An interrupt may have ended it half-way; where git does not know the tree, nothing is left.
            with contextlib.suppress(CheckoutError):
                _git(repository, "worktree", "remove", "--force", "--force", str(tree))
            raise
        try:
            if (tree / ".gitmodules").exists():
                _lay_out_submodules(repository, tree)
            yield tree
        finally:
            _git(repository, "worktree", "remove", "--force", "--force", str(tree))


def _lay_out_submodules(repository: Path, tree: Path) -> None:
    """Check out the submodules of a worktree, from the clones that the checkout has of them.

    Their remotes are asked only for commits that these clones lack: a bisection lays out dozens of
    trees, and the remote may be slow, out of reach, or without a commit that was never pushed.
    """
    update = ("submodule", "update", "--init", "--recursive")
    with contextlib.suppress(CheckoutError):
        if clones := _clones(repository):
            _git(tree, *update, settings=clones)
            return
    _git(tree, *update)


def _clones(repository: Path) -> dict[str, str]:
    """Settings of git that read each submodule's remote from the clone in this checkout instead."""
    each = 'git rev-parse --absolute-git-dir && git config --default "" --get remote.origin.url'
    lines = _git(repository, "submodule", "foreach", "--quiet", "--recursive", each).splitlines()
    known = zip(lines[::2], lines[1::2], strict=True)
    settings = {f"url.{folder}.insteadOf": url for folder, url in known if url}
    # Git lets a submodule come from a folder of this machine only where that is asked for.
    return settings | {"protocol.file.allow": "always"} if settings else {}


def suite_paths(
    asked: tuple[str, ...], *, root: Path, repository: Path, revision: str | None = None
) -> list[Path]:
    """Where the suites lie in the code to measure.

    A suite inside the repository is taken from the measured revision, so that benchmark and
    code belong together. One that this revision does not have yet is copied from here to the
    same place, and so is one that is asked for from another revision: a suite imports what
    lies around it, and that has to be the measured code.

    Args:
        asked: paths as the user wrote them, from the current folder; none means the built-in suite.
        root: the code to measure.
        repository: the checkout the user stands in.
        revision: where suites inside the repository come from; None for the measured code.

    Raises:
        CheckoutError: there is no such file or folder, or it may not be put into ``root``.
        UnknownRevision: git does not know ``revision``.
    """
    found = []
    for text in asked:
        here = Path(text).resolve()
        chosen = here
        if here.is_relative_to(repository):
            inside = here.relative_to(repository)
            chosen = root / inside
            if revision is not None:
                _restore(inside, revision, root=root, repository=repository)
            elif not chosen.exists() and here.exists():
                _copy(here, chosen)
        if not chosen.exists():
            raise _no_suite(text)
        found.append(chosen)
    return found


def suite_names(asked: tuple[str, ...], *, repository: Path) -> tuple[str, ...]:
    """What runs call their suites: the paths from the top folder of the checkout.

    However a suite was written, and from whichever folder, it is the same one: what is missing from
    a run, and what is still to be measured, is told by these names.

    Args:
        asked: paths as the user wrote them, from the current folder.
        repository: the top folder.
    """
    found = (Path(os.path.relpath(Path(text).resolve(), repository)).as_posix() for text in asked)
    return tuple(dict.fromkeys(found))


def refuse_unknown_suites(asked: tuple[str, ...], *, repository: Path, revisions: Sequence[str]) -> None:
    """Before many commits are measured: a suite that none of them has is a name that was misspelt.

    Args:
        asked: paths as the user wrote them, from the current folder.
        repository: the checkout the user stands in; what it has is copied to commits that lack it.
        revisions: the commits that suites may come from.

    Raises:
        CheckoutError: there is no such file or folder, here or in any of the commits.
    """
    git = Repository(repository)
    for text in asked:
        here = Path(text).resolve()
        if here.exists():
            continue
        inside = here.relative_to(repository).as_posix() if here.is_relative_to(repository) else None
        if inside is None or not any(git.has_path(sha, inside) for sha in revisions):
            raise _no_suite(text)


def _no_suite(text: str) -> CheckoutError:
    return CheckoutError(f"there is no suite at {text}: give --suite a Python file or a folder of them")


def _restore(inside: Path, revision: str, *, root: Path, repository: Path) -> None:
    """Put a suite as another revision has it into a worktree, in the place of what is there."""
    if root == repository:
        raise CheckoutError(
            f"the suites of {revision} cannot be put into this checkout: measure a commit, such as "
            "--commit $(git rev-parse HEAD), which gets a tree of its own"
        )
    if inside == Path():
        raise CheckoutError(
            f"with the whole repository as the suite, {revision} would be measured and nothing else: "
            "name the suite's own folder or file"
        )
    sha = Repository(repository).resolve(revision)  # HEAD of the user, not of the worktree
    try:
        _git(root, "restore", "--source", sha, "--worktree", "--", inside.as_posix())
    except CheckoutError as error:
        raise CheckoutError(
            f"{revision} has no suite at {inside.as_posix()}, name a revision that has it: {error}"
        ) from error


def _copy(here: Path, chosen: Path) -> None:
    chosen.parent.mkdir(parents=True, exist_ok=True)
    if here.is_dir():
        shutil.copytree(here, chosen, symlinks=True)
    else:
        shutil.copy2(here, chosen)


def top_folder(path: Path) -> Path:
    """The top folder of the checkout that ``path`` lies in, or ``path`` where there is no git."""
    try:
        return Path(_git(path, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()
    except CheckoutError:
        return path.resolve()


def _git(folder: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> str:
    """What git printed, whatever a hook that this runs in has told it about other folders.

    Raises:
        CheckoutError: it failed; the message begins with its reason.
    """
    command = ["git", "-C", str(folder), *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in REDIRECTING_VARIABLES}
    environment |= _as_variables(settings or {}, int(environment.get("GIT_CONFIG_COUNT") or 0))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckoutError(f"{' '.join(command)} failed: {error}") from error
    if done.returncode:
        raise CheckoutError(f"{_reason(done.stderr)} ({' '.join(command)} failed)")
    return done.stdout


def _as_variables(settings: Mapping[str, str], before: int) -> dict[str, str]:
    """Settings for git and the gits it starts, behind those that the environment holds already."""
    variables = {"GIT_CONFIG_COUNT": str(before + len(settings))} if settings else {}
    for place, (name, value) in enumerate(settings.items(), before):
        variables |= {f"GIT_CONFIG_KEY_{place}": name, f"GIT_CONFIG_VALUE_{place}": value}
    return variables


def _reason(said: str) -> str:
    """The lines in which git says what went wrong, without what it did before; all where there is none."""
    lines = said.strip().splitlines()
    return "; ".join([line for line in lines if line.startswith(("fatal:", "error:"))] or lines)
