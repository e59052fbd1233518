"""Fixtures of the collector's tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(name="bare_python", scope="session")
def _bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a virtual environment in which nothing is installed."""
    folder = tmp_path_factory.mktemp("bare environment")  # with a space, as people have them
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(Path(folder, "bin", "python"))
