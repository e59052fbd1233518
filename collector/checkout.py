"""The code to measure, laid out on disk: this checkout, or a git worktree of another revision."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CheckoutError
from store.git import REDIRECTING_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

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
                _git(tree, "submodule", "update", "--init", "--recursive")
            yield tree
        finally:
            _git(repository, "worktree", "remove", "--force", "--force", str(tree))


def suite_paths(asked: tuple[str, ...], *, root: Path, repository: Path) -> list[Path]:
    """Where the suites lie in the code to measure.

    A suite inside the repository is taken from the measured revision, so that benchmark and
    code belong together; one that this revision does not have yet is taken from here.

    Args:
        asked: paths as the user wrote them, from the current folder; none means the built-in suite.
        root: the code to measure.
        repository: the checkout the user stands in.

    Raises:
        CheckoutError: there is no such file or folder.
    """
    found = []
    for text in asked:
        here = Path(text).resolve()
        there = root / here.relative_to(repository) if here.is_relative_to(repository) else here
        chosen = there if there.exists() else here
        if not chosen.exists():
            raise CheckoutError(
                f"there is no suite at {text}: give --suite a Python file or a folder of them"
            )
        found.append(chosen)
    return found


def top_folder(path: Path) -> Path:
    """The top folder of the checkout that ``path`` lies in, or ``path`` where there is no git."""
    try:
        return Path(_git(path, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()
    except CheckoutError:
        return path.resolve()


def _git(folder: Path, *arguments: str) -> str:
    """What git printed, whatever a hook that this runs in has told it about other folders."""
    command = ["git", "-C", str(folder), *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in REDIRECTING_VARIABLES}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckoutError(f"{' '.join(command)} failed: {error}") from error
    if done.returncode:
        raise CheckoutError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
