"""The scripts that `make` and continuous integration build the environment with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(ROOT.glob("scripts/*.sh"))
HAS_GPU_DEVICE = Path("/dev/nvidiactl").exists()


def a_program(folder: Path, name: str, body: str) -> None:
    """Put an executable shell script into a folder that a test puts on the path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", script, *arguments],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(HAS_GPU_DEVICE, reason="this machine has an NVIDIA GPU")
@pytest.mark.parametrize(
    "nvidia_smi",
    [
        pytest.param("echo 'No devices were found'; exit 6", id="no-device"),
        pytest.param("exit 127", id="broken"),
    ],
)
def test_a_machine_without_a_gpu_is_constrained(nvidia_smi: str, tmp_path: Path) -> None:
    a_program(tmp_path, "nvidia-smi", nvidia_smi)

    answer = run(ROOT / "scripts/constraints.sh", PATH=f"{tmp_path}:{os.environ['PATH']}")

    assert answer.returncode == 0
    assert (ROOT / answer.stdout.strip()).is_file()
    assert "no NVIDIA GPU" in answer.stderr


def test_a_machine_with_a_gpu_is_not_constrained_and_says_why(tmp_path: Path) -> None:
    a_program(tmp_path, "nvidia-smi", "echo 'GPU 0: NVIDIA H200 (UUID: GPU-5b1e4f6a)'")

    answer = run(ROOT / "scripts/constraints.sh", PATH=f"{tmp_path}:{os.environ['PATH']}")

    assert answer.returncode == 0
    assert answer.stdout == ""
    assert answer.stderr.startswith("NVIDIA GPU: ")


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path) -> Path:
    """A folder with a space in its name that holds the scripts and no environment."""
    scripts = tmp_path / "a checkout" / "scripts"
    scripts.mkdir(parents=True)
    for name in ("environment.sh", "constraints.sh"):
        (scripts / name).write_bytes((ROOT / "scripts" / name).read_bytes())
        (scripts / name).chmod(0o755)
    return scripts.parent


@pytest.fixture(name="tools")
def _tools(tmp_path: Path) -> Path:
    """A folder that is the whole path: what the scripts need to start, and no Python."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "grep"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return tools


def test_without_a_suitable_python_the_message_says_what_to_install(checkout: Path, tools: Path) -> None:
    a_program(tools, "python3", "exit 1")  # as an interpreter that is too old answers

    answer = run(checkout / "scripts/environment.sh", "all", PATH=str(tools))

    assert answer.returncode == 1
    assert "Python 3.11 or newer" in answer.stderr
    assert "make run PYTHON=" in answer.stderr
    assert not (checkout / ".venv").exists()


def test_a_named_python_that_does_not_suit_is_not_replaced_silently(checkout: Path, tools: Path) -> None:
    a_program(tools, "python3", "exit 0")
    a_program(tools, "python2.7", "exit 1")

    answer = run(checkout / "scripts/environment.sh", "all", PATH=str(tools), PYTHON="python2.7")

    assert answer.returncode == 1
    assert "PYTHON=python2.7 does not suit" in answer.stderr


def test_the_environment_is_installed_with_the_extras_that_were_asked_for(
    checkout: Path, tools: Path
) -> None:
    interpreter = checkout / ".venv/bin/python"
    interpreter.parent.mkdir(parents=True)
    a_program(interpreter.parent, "python", 'printf "<%s>" "$@"')

    answer = run(checkout / "scripts/environment.sh", "all,test", PATH=str(tools))

    assert answer.returncode == 0
    assert answer.stdout.endswith("<--editable><.[all,test]>")
    assert ("<--constraint><constraints/cpu.txt>" in answer.stdout) is not HAS_GPU_DEVICE


@pytest.mark.parametrize("script", [*SCRIPTS, ROOT / ".ci/run"], ids=lambda path: path.name)
def test_a_script_stops_at_the_first_error(script: Path) -> None:
    assert re.search(r"^set -eu(o pipefail)?$", script.read_text(encoding="utf-8"), re.MULTILINE)
    assert os.access(script, os.X_OK)


def test_every_action_is_pinned_to_a_commit_and_says_which_version_it_is() -> None:
    used = [
        line.strip()
        for path in (ROOT / ".github").rglob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*-?\s*uses:\s*(?!\./)", line)
    ]

    unpinned = [line for line in used if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)]

    assert used
    assert unpinned == []
