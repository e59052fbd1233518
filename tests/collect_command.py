"""Run the command ``collect`` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.database import Database

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S = 60
COLLECT = [sys.executable, "-P", "-m", "collector"]


@dataclass(frozen=True)
class Project:
    """A repository with a suite, and how to run the command in it."""

    path: Path
    python: str

    def collect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )

    def command(self, *arguments: str) -> list[str]:
        return [*COLLECT, "--python", self.python, "--suite", "bench_example.py", *arguments]

    def store(self) -> Database:
        return Database(self.path / "kernelwatch.duckdb")
