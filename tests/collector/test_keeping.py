"""A run is kept whatever becomes of the store and the judge."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from builders import a_run

from collector import keeping
from collector.keeping import Kept, keep
from store.bundle import read_bundle
from store.database import Database
from store.errors import StoreError
from store.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN = a_run()
RESCUED = f"kernelwatch-{RUN.header.run_id}.kernelwatch.gz"
HOLDER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keeping, "Database", functools.partial(Database, lock_deadline_s=0.2))


def kept(*, output: str | None = None, url: str | None = None) -> Kept:
    return keep(RUN, output=None if output is None else Path(output), url=url, say=lambda _text: None)


@pytest.fixture(name="locked_store")
def _locked_store() -> Iterator[str]:
    """A store that another process holds open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, "locked.duckdb"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield "locked.duckdb"
        holder.communicate("")


def test_a_run_goes_into_the_default_store_and_is_judged() -> None:
    result = kept()

    assert result.problem is None
    assert result.verdicts is not None
    assert [verdict.run_id for verdict in result.verdicts] == [RUN.header.run_id]
    assert load_run(Database("kernelwatch.duckdb"), RUN.header.run_id) == RUN


def test_a_bundle_alone_writes_no_store() -> None:
    result = kept(output="run.kernelwatch.gz")

    assert result == Kept()
    assert read_bundle(Path("run.kernelwatch.gz")) == RUN
    assert [path.name for path in Path().iterdir()] == ["run.kernelwatch.gz"]


def test_a_bundle_and_a_store_hold_the_same_run() -> None:
    kept(output="run.kernelwatch.gz", url="other.duckdb")

    assert read_bundle(Path("run.kernelwatch.gz")) == load_run(Database("other.duckdb"), RUN.header.run_id)


def test_a_run_is_rescued_from_a_locked_store(locked_store: str) -> None:
    result = kept(url=locked_store)

    assert read_bundle(Path(RESCUED)) == RUN
    assert result.verdicts is None
    assert result.problem is not None
    assert "locked.duckdb is in use by" in result.problem
    assert f"it lies in {RESCUED}; `store import {RESCUED}` takes it in" in result.problem


def test_a_run_is_rescued_from_a_store_of_a_newer_schema() -> None:
    kept(url="newer.duckdb")
    with duckdb.connect("newer.duckdb") as connection:
        connection.execute("update schema_version set version = 99")

    result = kept(url="newer.duckdb")

    assert result.problem is not None
    assert "upgrade kernelwatch here" in result.problem
    assert read_bundle(Path(RESCUED)) == RUN


def test_a_run_that_lies_in_a_bundle_already_is_not_rescued_into_another(locked_store: str) -> None:
    result = kept(output="run.kernelwatch.gz", url=locked_store)

    assert result.problem is not None
    assert "it lies in run.kernelwatch.gz" in result.problem
    assert not Path(RESCUED).exists()


def test_a_run_is_rescued_from_a_bundle_that_cannot_be_written() -> None:
    result = kept(output="no/such/folder/run.kernelwatch.gz")

    assert result.problem is not None
    assert result.problem.startswith("cannot write the bundle no/such/folder/run.kernelwatch.gz")
    assert read_bundle(Path(RESCUED)) == RUN


def test_a_run_is_rescued_among_temporary_files_where_nothing_can_be_written_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, gone = tmp_path / "temporary", tmp_path / "gone"
    temporary.mkdir()
    gone.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(gone)
    gone.rmdir()  # nobody, not even root, can write here

    result = kept(output="run.kernelwatch.gz")

    assert result.problem is not None
    assert f"it lies in {temporary / RESCUED}" in result.problem
    assert read_bundle(temporary / RESCUED) == RUN


def test_a_run_that_can_be_kept_nowhere_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(gone))
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(StoreError, match="cannot write the bundle"):
        kept(output="run.kernelwatch.gz")


def test_a_module_called_alerts_in_the_users_folder_does_not_judge() -> None:
    Path("alerts.py").write_text("raise SystemExit('the wrong one')", encoding="utf-8")

    assert kept().verdicts is not None


def test_a_judge_that_fails_leaves_the_run_stored_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    result = kept()

    assert result.verdicts is None
    assert result.problem is not None
    assert result.problem == "the run is stored but could not be judged: `alerts judge` ended with status 1"
    assert load_run(Database("kernelwatch.duckdb"), RUN.header.run_id) == RUN


def test_a_judge_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(keeping, "_JUDGE_LIMIT_S", 0.2)

    problem = kept().problem

    assert problem is not None
    assert f"run `alerts judge --run {RUN.header.run_id} --store kernelwatch.duckdb`" in problem


def test_ctrl_c_in_a_terminal_does_not_reach_the_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal sends it to the whole process group; the run would be stored and never judged."""
    stand_in = tmp_path / "python"
    stand_in.write_text(
        f"#!{sys.executable}\nimport json, os\nprint(json.dumps({{'unanswered': str(os.getpgrp())}}))\n"
    )
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))

    its_group = kept(url="runs.duckdb").unanswered

    assert its_group not in (None, str(os.getpgrp()))
