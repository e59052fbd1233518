"""The command ``store``, as a person or a CI job meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from builders import a_commit, a_failure, a_header, a_measurement, a_run, a_sha, a_verdict, a_window
from click.testing import CliRunner, Result
from triage_events import a_revocation, an_event

from store.bundle import read_bundle, write_bundle
from store.cli import main
from store.records import FoldStatus, Interval, Reading
from store.runs import find_runs, load_run, save_run
from store.triage import save_triage_events
from store.verdicts import save_verdicts

if TYPE_CHECKING:
    from store.database import Database

ROOT = Path(__file__).parents[2]


def store(database: Database, *arguments: str | Path) -> Result:
    """Run the command on a store, in this process."""
    return CliRunner().invoke(
        main, [*map(str, arguments), "--store", database.url], catch_exceptions=False, prog_name="store"
    )


def test_runs_are_listed_newest_first(database: Database) -> None:
    save_run(database, a_run(10, failures=(a_failure(),)))
    save_run(database, a_run(11, header={"dirty": True, "interrupted": True}))

    result = store(database, "show")

    heading, newest, oldest = result.stdout.splitlines()
    assert result.exit_code == 0
    words = ["RUN", "STARTED", "(UTC)", "COMMIT", "GPU", "TIMER", "MEASURED", "FAILED", "CONFIRMS"]
    assert heading.split() == words
    assert newest.startswith(f"{a_header(11).run_id[:8]}  2026-03-02 20:10  000000000+  NVIDIA H200  cupti")
    assert newest.endswith("1 (interrupted)  0")
    assert oldest.split()[0] == a_header(10).run_id[:8]
    assert oldest.split()[-2:] == ["1", "1"]


def test_a_run_that_confirms_another_names_it(database: Database) -> None:
    first = a_run(10)
    again = a_run(10, number=1, header={"confirms_run_id": first.header.run_id})
    for run in (first, again):
        save_run(database, run)

    listed, one = store(database, "show"), store(database, "show", again.header.run_id)

    assert listed.stdout.splitlines()[1].endswith(f"  0       {first.header.run_id[:8]}")
    (line,) = [line for line in one.stdout.splitlines() if line.startswith("confirms ")]
    assert line.endswith(f"  what was flagged in run {first.header.run_id}")


def test_a_limit_keeps_the_newest(database: Database) -> None:
    save_run(database, a_run(10))
    save_run(database, a_run(11))

    assert a_header(10).run_id[:8] not in store(database, "show", "--limit", "1").stdout


def test_runs_are_listed_for_programs(database: Database) -> None:
    save_run(database, a_run(failures=(a_failure(),)))

    (listed,) = json.loads(store(database, "show", "--format", "json").stdout)

    assert listed["header"]["run_id"] == a_header().run_id
    assert (listed["measured"], listed["failed"]) == (1, 1)


def test_a_run_is_shown_with_its_intervals_tiers_windows_and_failures(database: Database) -> None:
    refused = Interval(0.25, None, None, 1, FoldStatus.REFUSED)
    windows = (a_window(), a_window(1, invalid="another process on the GPU"))
    run = a_run(
        header={"context": {"gpu.power_w": Reading(error="NVML: Not Supported")}, "history_note": "shallow"},
        measurements=(a_measurement(), a_measurement("gather", windows=windows, interval=refused)),
        failures=(a_failure(), a_failure(case=None)),
    )
    save_run(database, run)

    result = store(database, "show", run.header.run_id[:8])

    text = result.stdout
    assert result.exit_code == 0
    assert f"commit         {a_sha(10)}\n" in text
    assert "gpu.power_w    unreadable: NVML: Not Supported" in text
    assert "history        shallow" in text
    cells = [line.split("  ") for line in text.splitlines()]
    rows = [[cell.strip() for cell in line if cell] for line in cells]
    assert ["softmax[rows=1024]", "249.8 us (249.7 to 250.1)", "A", "8", "240"] in [row[:5] for row in rows]
    assert ["gather[rows=1024]", "250.0 us (no interval)", "A", "1 of 2", "30 of 60"] in [
        row[:5] for row in rows
    ]
    assert text.count("held clocks; 8 windows of their own process") == 2
    assert "FAILED broken at suites/example.py:30 (call): ValueError: shapes do not match" in text
    assert "FAILED suite file at" in text


def test_a_run_is_shown_for_programs_without_its_samples(database: Database) -> None:
    run = a_run()
    save_run(database, run)

    shown = json.loads(store(database, "show", run.header.run_id[:8], "--format", "json").stdout)

    window = shown["measurements"][0]["windows"][0]
    assert shown["header"]["commit_sha"] == a_sha(10)
    assert (window["n"], window["n_kept"]) == (30, 30)
    assert window["median_ms"] == run.measurements[0].windows[0].median_ms
    assert "samples_ms" not in window
    assert shown["n_history"] == 10


def test_a_run_in_which_nothing_was_measured_says_so(database: Database) -> None:
    save_run(database, a_run(measurements=()))

    assert "Nothing was measured." in store(database, "show", a_header().run_id).stdout


def test_what_a_benchmark_says_cannot_drive_the_terminal(database: Database) -> None:
    hostile = "\x1b[2J\x07evil\nline"
    run = a_run(
        header={"gpu_name": hostile, "context": {hostile: Reading(value=hostile)}},
        measurements=(a_measurement(hostile, source=hostile, tier_evidence=(hostile,)),),
        failures=(a_failure(hostile, message=hostile, kind=hostile, source=hostile),),
    )
    save_run(database, run)

    for result in (store(database, "show"), store(database, "show", run.header.run_id)):
        assert "\x1b" not in result.stdout
        assert "\x07" not in result.stdout
        assert "\nline" not in result.stdout


@pytest.mark.parametrize("command", [["show"], ["show", "abc"], ["export", "abc", "file"]])
def test_an_absent_store_is_an_error_with_a_way_out(database: Database, command: list[str]) -> None:
    result = store(database, *command)

    assert result.exit_code == 3
    assert "Error: there is no store at" in result.stderr
    assert "collect" in result.stderr
    assert not database.exists()


def test_an_unknown_run_is_an_error(database: Database) -> None:
    save_run(database, a_run())

    result = store(database, "show", "ffff")

    assert result.exit_code == 3
    assert "no run in" in result.stderr


def test_a_store_without_runs_says_what_to_do(database: Database) -> None:
    with database.writing():
        pass

    assert "holds no run yet: measure something with 'collect'" in store(database, "show").stdout


def test_a_run_travels_from_one_store_to_another(database: Database, tmp_path: Path) -> None:
    run = a_run(failures=(a_failure(),))
    save_run(database, run)
    file = tmp_path / "run.kernelwatch.gz"
    there = type(database)(tmp_path / "there.duckdb")

    exported = store(database, "export", run.header.run_id[:8], file)
    first = store(there, "import", file)
    second = store(there, "import", file, file)

    assert exported.stdout == f"wrote run {run.header.run_id} to {file}\n"
    assert first.stdout == f"imported {file}: run {run.header.run_id}\n"
    assert second.stdout == f"already there {file}: run {run.header.run_id}\n" * 2
    assert (exported.exit_code, first.exit_code, second.exit_code) == (0, 0, 0)
    assert load_run(there, run.header.run_id) == run
    assert read_bundle(file) == run


def test_good_bundles_are_taken_in_beside_a_bad_one(database: Database, tmp_path: Path) -> None:
    for name, run in (("1", a_run(10)), ("3", a_run(11))):
        write_bundle(run, tmp_path / name)
    (tmp_path / "2").write_bytes(b"no bundle")

    result = store(database, "import", *(tmp_path / name for name in ("1", "2", "3")))

    assert result.exit_code == 3
    assert result.stderr == (
        f"refused {tmp_path / '2'}: this is not a gzip file, or it is damaged: export it again\n"
    )
    assert result.stdout.count("imported") == 2
    assert len(find_runs(database)) == 2


def test_a_bundle_that_contradicts_the_store_is_refused(database: Database, tmp_path: Path) -> None:
    save_run(database, a_run(10))
    write_bundle(a_run(11, history=(a_commit(11), a_commit(10, parents=()))), tmp_path / "forged")

    result = store(database, "import", tmp_path / "forged")

    assert result.exit_code == 3
    assert f"refused {tmp_path / 'forged'}: commit {a_sha(10)}" in result.stderr


def test_a_healthy_store_is_found_healthy(database: Database) -> None:
    run = a_run(failures=(a_failure(),))
    save_run(database, run)
    save_verdicts(database, [a_verdict(run)])

    result = store(database, "doctor")

    assert result.exit_code == 0
    assert {line.split()[0] for line in result.stdout.splitlines()} == {"fine"}
    assert "it holds 1 runs, 1 measurements, 8 windows, 1 kernels, 1 failures, 1 verdicts" in result.stdout


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("delete from runs", "1 measurements without their run"),
        ("delete from runs", "1 failures without their run"),
        ("delete from measurements", "8 windows without their measurement"),
        ("delete from measurements", "1 kernels without their measurement"),
        ("delete from measurements", "1 verdicts without their measurement"),
        ("insert into runs select * from runs", "1 runs that are stored twice"),
        ("insert into verdicts select * from verdicts", "1 verdicts on a series that has another one"),
        ("delete from run_lists", "1 verdicts whose list of runs is missing"),
        (
            "insert into run_lists select * from run_lists",
            "1 verdicts whose list of runs is missing or stored",
        ),
        ("insert into commits select * from commits where sha like '%a'", "1 commits that are stored twice"),
        ("update windows set n = 7 where window_index = 0", "1 windows whose lists disagree"),
        (
            "insert into triage_events select * from triage_events where revokes is null",
            "1 decisions that are stored twice",
        ),
        (
            "delete from triage_events where revokes is null",
            "1 decisions that take back one that is not there",
        ),
        ("delete from commits", "1 runs whose history names commits that are not stored"),
    ],
)
def test_damage_is_found_with_its_remedy(database: Database, damage: str, finding: str) -> None:
    run = a_run(failures=(a_failure(),))
    save_run(database, run)
    save_verdicts(database, [a_verdict(run)])
    save_triage_events(database, [an_event(), a_revocation(an_event())])
    with database.writing() as connection:
        connection.execute(damage)

    result = store(database, "doctor")

    assert result.exit_code == 3
    assert f"wrong  {finding}" in result.stdout
    assert "-> something else than kernelwatch has changed the store" in result.stdout


def test_runs_without_history_are_noted_but_not_wrong(database: Database) -> None:
    save_run(database, a_run(None))
    save_run(database, a_run(10, header={"history_note": "this clone is shallow"}))
    save_run(database, a_run(11, number=1, history=()))

    result = store(database, "doctor")

    assert result.exit_code == 0
    assert "note   1 runs are of code in no commit" in result.stdout
    assert "note   2 runs do not know their history in full" in result.stdout
    assert "fetch-depth: 0" in result.stdout


def test_an_absent_store_is_wrong(database: Database) -> None:
    result = store(database, "doctor")

    assert result.exit_code == 3
    assert "wrong  there is no store at" in result.stdout


def test_a_file_that_is_no_store_is_wrong(database: Database) -> None:
    database.path.write_text("hello")

    result = store(database, "doctor")

    assert result.exit_code == 3
    assert "is not a DuckDB file" in result.stdout


def test_a_store_that_is_in_use_is_named_with_its_user(database: Database) -> None:
    save_run(database, a_run())
    code = (
        "import sys; from store.database import Database\n"
        "with Database(sys.argv[1]).writing(): print('holding', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, database.url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holding\n"

    result = store(database, "doctor")
    holder.communicate(timeout=60)

    assert result.exit_code == 3
    assert f"(PID {holder.pid})" in result.stdout


def test_the_wal_of_a_killed_writer_is_pointed_out(database: Database) -> None:
    save_run(database, a_run())
    code = (
        "import os, sys; from store.database import Database\n"
        "with Database(sys.argv[1])._opened(read_only=False) as connection:\n"
        "    connection.execute(\"update runs set gpu_name = 'renamed'\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, database.url], cwd=ROOT, check=True)
    assert database.wal_path.exists()

    result = store(database, "doctor")

    assert result.exit_code == 0
    assert "runs.duckdb.wal has 0.0 MiB; copy it along with the store" in result.stdout
    assert find_runs(database)[0].gpu_name == "renamed"


def test_the_store_can_be_named_by_the_environment(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_run(database, a_run())
    monkeypatch.setenv("KERNELWATCH_STORE", database.url)

    assert a_header().run_id[:8] in CliRunner().invoke(main, ["show"]).stdout


@pytest.mark.parametrize(
    "command", [["import"], ["export", "abc"], ["show", "--format", "xml"], ["frobnicate"]]
)
def test_wrong_usage_exits_with_2(command: list[str]) -> None:
    assert CliRunner().invoke(main, command).exit_code == 2


def test_the_module_is_the_command(database: Database) -> None:
    save_run(database, a_run())

    done = subprocess.run(
        [sys.executable, "-m", "store", "show", "--store", database.url],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )

    assert a_header().run_id[:8] in done.stdout
