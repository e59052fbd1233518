"""Real git repositories, made by the tests that need them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Nobody's own settings have a say.
SETTINGS = {
    "GIT_AUTHOR_NAME": "Ada Example",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Example",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Tree:
    """A repository with a working tree, made by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, date: str = "2026-03-02T09:00:00+01:00") -> str:
        """Run git here and give what it printed."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env=os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, subject: str, *, date: str = "2026-03-02T09:00:00+01:00") -> str:
        """An empty commit; its id."""
        self.git("commit", "-q", "--allow-empty", "-m", subject, date=date)
        return self.git("rev-parse", "HEAD")

    def clone(self, path: Path, *options: str) -> Tree:
        """A clone through the file protocol, as depth needs it."""
        subprocess.run(["git", "clone", "-q", *options, f"file://{self.path}", str(path)], check=True)
        return Tree(path)
