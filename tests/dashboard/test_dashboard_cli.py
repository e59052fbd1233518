"""The console command ``dashboard``."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import a_header
from click.testing import CliRunner

from dashboard import cli
from dashboard.reproduce import reproduce_command

ROOM = Path(cli.__file__).parent


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """What would have been started, instead of taking the place of the test run."""
    calls: list[tuple[list[str], dict[str, str]]] = []

    def record(_program: str, arguments: list[str], environment: dict[str, str]) -> None:
        calls.append((arguments, environment))

    monkeypatch.setattr("dashboard.cli.os.execve", record)
    return calls


def test_the_server_stays_on_this_machine_and_tells_nobody(started: list[Any]) -> None:
    result = CliRunner().invoke(cli.main, [])

    assert result.exit_code == 0, result.output
    ((arguments, _),) = started
    assert {
        "--server.address=127.0.0.1",
        "--browser.gatherUsageStats=false",
        "--server.headless=true",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=none",
        "--server.fileWatcherType=none",
    } <= set(arguments)


def test_the_store_travels_to_the_server_in_the_environment(started: list[Any]) -> None:
    CliRunner().invoke(
        cli.main, ["--store", "runs.duckdb", "--port", "9000", "--base-path", "/perf/", "--open"]
    )

    ((arguments, environment),) = started
    assert environment["KERNELWATCH_STORE"] == "runs.duckdb"
    assert "--server.port=9000" in arguments
    assert "--server.baseUrlPath=perf" in arguments
    assert "--server.headless=false" in arguments


def test_the_configuration_travels_to_the_server_in_the_environment(
    started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELWATCH_CONFIG", raising=False)
    file = tmp_path / "ci.toml"
    file.write_text('[judge]\nrelease_tags = ["nightly-*"]\n')

    CliRunner().invoke(cli.main, ["--config", str(file)])
    CliRunner().invoke(cli.main, [])

    (_, named), (_, found_by_the_pages) = started
    assert named["KERNELWATCH_CONFIG"] == str(file)
    assert "KERNELWATCH_CONFIG" not in found_by_the_pages


def test_a_configuration_with_a_mistake_starts_nothing(started: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "ci.toml"
    file.write_text("[judge]\nrelease_tag = []\n")

    result = CliRunner().invoke(cli.main, ["--config", str(file)])

    assert result.exit_code == 2
    assert f"{file}, [judge]" in result.output
    assert "unknown key 'release_tag'" in result.output
    assert not started


def test_an_open_address_comes_with_a_warning(started: list[Any]) -> None:
    result = CliRunner().invoke(cli.main, ["--address", "0.0.0.0"])  # noqa: S104 - the warning is the point

    assert "whoever reaches this port can read the store" in result.stderr
    assert len(started) == 1


def test_without_streamlit_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    monkeypatch.setattr("dashboard.cli.importlib.util.find_spec", lambda _name: None)

    result = CliRunner().invoke(cli.main, [])

    assert result.exit_code == 1
    assert "pip install 'kernelwatch[dashboard]'" in result.output
    assert not started


def test_no_file_of_the_room_hides_a_package() -> None:
    """``streamlit run`` puts the folder first on the path, so that its files shadow their namesakes."""
    ours = {path.stem for path in ROOM.iterdir() if path.suffix == ".py" or path.is_dir()}
    theirs = set(importlib.metadata.packages_distributions()) | set(sys.stdlib_module_names)

    assert (ours & theirs) - {"__init__", "__main__", "__pycache__"} == set()


def test_the_command_to_reproduce_names_every_condition() -> None:
    header = a_header(3, suites=("builtin", "bench suites/attention.py"), passes=3)

    assert reproduce_command(header) == (
        f"collect --commit {header.commit_sha} --gpu {header.gpu_uuid} --timer cupti --clocks held "
        "--passes 3 --suite 'bench suites/attention.py'"
    )


def test_the_command_to_reproduce_asks_for_no_gpu_where_there_is_none() -> None:
    header = a_header(None, gpu_uuid="cpu:runner-1", timer="wall")

    assert reproduce_command(header) == "collect --commit HEAD --timer wall --clocks held --passes 8"
