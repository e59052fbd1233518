"""Fixtures of the collector's tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from trees import SETTINGS, Tree


@pytest.fixture(name="bare_python", scope="session")
def _bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a virtual environment in which nothing is installed."""
    folder = tmp_path_factory.mktemp("bare environment")  # with a space, as people have them
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(Path(folder, "bin", "python"))


@pytest.fixture(name="tree")
def _tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A repository without a commit, in a folder with a space; new temporary files stay in the test's."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return Tree(tmp_path / "my kernels")
