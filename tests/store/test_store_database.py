"""Many processes share one file, some of them die, and the store stays whole."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from builders import a_header, a_run

from store.database import Database
from store.errors import StoreError, StoreInvalid, StoreLocked, StoreMissing, StoreTooNew
from store.runs import find_runs, load_run, save_run
from store.schema import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PREAMBLE = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from builders import a_run
from store.database import Database
from store.runs import find_runs, save_run
"""
# Says when it holds the file, and lets go when its input ends.
HOLD = """
with getattr(Database(sys.argv[1]), sys.argv[2])():
    print("holding", flush=True)
    sys.stdin.read()
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process that runs ``code`` beside us."""
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Holder:
    """A process that has the store open until it is told to let go."""

    def __init__(self, database: Database, how: str) -> None:
        self.process = python(HOLD, str(database.path), how)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "holding\n"

    def let_go(self) -> None:
        """End it in good order."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


@pytest.fixture(name="saved")
def _saved(database: Database) -> Iterator[Database]:
    save_run(database, a_run())
    yield database
    assert database.exists()


def test_eight_processes_save_their_runs_into_one_new_store(database: Database) -> None:
    """None of them finds a store, and all of them want to make it."""
    code = "for number in range(5): save_run(Database(sys.argv[1]), a_run(int(sys.argv[2]), number=number))"
    writers = [python(code, str(database.path), str(commit)) for commit in range(10, 18)]
    for writer in writers:
        writer.communicate(timeout=120)

    assert [writer.returncode for writer in writers] == [0] * 8
    saved = [header.run_id for header in find_runs(database)]
    assert sorted(saved) == sorted(
        a_header(commit, number=number).run_id for commit in range(10, 18) for number in range(5)
    )
    assert [path.name for path in database.path.parent.iterdir()] == [database.path.name]


def test_eight_processes_save_the_same_run_once(database: Database) -> None:
    code = "print(save_run(Database(sys.argv[1]), a_run(10)))"
    writers = [python(code, str(database.path)) for _ in range(8)]
    said = sorted(writer.communicate(timeout=120)[0].strip() for writer in writers)

    assert said == ["False"] * 7 + ["True"]
    assert load_run(database, a_header(10).run_id) == a_run(10)


def test_a_reader_waits_for_a_writer(saved: Database) -> None:
    holder = Holder(saved, "writing")
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(find_runs, saved)
        holder.let_go()

    assert reading.result(timeout=60) == [a_run().header]


def test_a_writer_waits_for_a_reader(saved: Database) -> None:
    holder = Holder(saved, "reading")
    with ThreadPoolExecutor() as threads:
        writing = threads.submit(save_run, saved, a_run(11))
        holder.let_go()

    assert writing.result(timeout=60) is True


def test_readers_of_two_processes_do_not_wait_for_each_other(saved: Database) -> None:
    holder = Holder(saved, "reading")

    assert len(find_runs(Database(saved.path, lock_deadline_s=0))) == 1
    holder.let_go()


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_who_waits_too_long_is_told_who_has_the_file(saved: Database, how: str) -> None:
    holder = Holder(saved, how)
    impatient = Database(saved.path, lock_deadline_s=0.2)

    with pytest.raises(StoreLocked) as caught:
        save_run(impatient, a_run(11))

    assert f"PID {holder.process.pid}" in str(caught.value)
    assert str(saved.path) in str(caught.value)
    assert "waited 0.2 s" in str(caught.value)
    holder.let_go()


def test_who_cannot_bring_an_older_store_up_to_date_is_told_that_reading_needs_it(database: Database) -> None:
    code = """
import duckdb
with duckdb.connect(sys.argv[1], read_only=True):
    print("holding", flush=True)
    sys.stdin.read()
"""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{database.path}' as db; use db")
        migrate(connection, target=9)
    reader = python(code, str(database.path))
    assert reader.stdout is not None
    assert reader.stdout.readline() == "holding\n"

    with pytest.raises(StoreLocked, match=r"is of an older kernelwatch, and .*: .* is in use by .*PID \d+"):
        find_runs(Database(database.path, lock_deadline_s=0.1))
    reader.communicate(timeout=60)

    assert find_runs(database) == []


def test_a_writer_killed_in_its_transaction_leaves_the_store_whole(saved: Database) -> None:
    code = """
with Database(sys.argv[1]).writing() as connection:
    connection.execute("delete from runs")
    connection.execute(
        "insert into commits select 'r', i::varchar, [], 'a', now(), now(), 's' from range(99999) t(i)"
    )
    print("holding", flush=True)
    sys.stdin.read()
"""
    writer = python(code, str(saved.path))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "holding\n"
    writer.kill()
    writer.communicate(timeout=60)

    assert load_run(saved, a_run().header.run_id) == a_run()
    with saved.reading() as connection:
        assert connection.execute("select count(*) from commits where author = 'a'").fetchall() == [(0,)]
    assert save_run(saved, a_run(11)) is True


def test_a_writer_killed_at_any_moment_loses_nothing_it_has_acknowledged(saved: Database) -> None:
    code = """
import os
for number in range(1, 1000):
    save_run(Database(sys.argv[1]), a_run(10, number=number))
    os.write(1, f"{number}\\n".encode())
"""
    for _ in range(3):
        writer = python(code, str(saved.path))
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(3)]
        writer.kill()
        acknowledged += [int(line) for line in writer.communicate(timeout=60)[0].split()]

        kept = {header.run_id for header in find_runs(saved)}
        assert {a_header(10, number=number).run_id for number in acknowledged} <= kept
        for run_id in kept:
            assert len(load_run(saved, run_id).measurements[0].windows) == 8


def test_threads_of_one_process_take_turns(saved: Database) -> None:
    """POSIX locks belong to a process: were two connections open, closing one would unlock both."""

    def work(number: int) -> int:
        if number % 3 == 0:
            save_run(saved, a_run(10, number=number))
        return len(find_runs(saved))

    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(work, range(1, 25)))

    assert all(1 <= count <= 9 for count in seen)
    assert len(find_runs(saved)) == 9


def test_one_thread_cannot_open_the_store_twice(saved: Database) -> None:
    with saved.reading(), pytest.raises(StoreError, match="pass that connection on"):
        find_runs(saved)
    assert len(find_runs(saved)) == 1


def test_a_thread_that_waits_too_long_for_another_is_told_so(saved: Database) -> None:
    entered, done = threading.Event(), threading.Event()

    def hold() -> None:
        with saved.reading():
            entered.set()
            done.wait(timeout=60)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(timeout=60)
    with pytest.raises(StoreLocked, match="another thread of this process"):
        find_runs(Database(saved.path, lock_deadline_s=0))
    done.set()
    thread.join()


def test_an_error_inside_a_transaction_undoes_all_of_it(saved: Database) -> None:
    class Stop(Exception):  # noqa: N818 - no error of the program
        pass

    def half() -> None:
        with saved.writing() as connection:
            connection.execute("delete from runs")
            raise Stop

    with pytest.raises(Stop):
        half()
    assert len(find_runs(saved)) == 1


def test_a_reader_cannot_write(saved: Database) -> None:
    with saved.reading() as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("delete from runs")


def test_nothing_holds_the_file_between_two_visits(saved: Database) -> None:
    find_runs(saved)

    Holder(saved, "writing").let_go()


def test_an_absent_store_is_not_made_by_looking_for_it(database: Database) -> None:
    with pytest.raises(StoreMissing), database.reading():
        pass
    assert list(database.path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 1000])
def test_another_file_is_refused_and_left_alone(database: Database, content: bytes) -> None:
    database.path.write_bytes(content)

    with pytest.raises(StoreInvalid, match="not a DuckDB file"):
        save_run(database, a_run())
    assert database.path.read_bytes() == content


def test_another_database_is_refused_and_left_alone(database: Database) -> None:
    with duckdb.connect(str(database.path)) as connection:
        connection.execute("create table customers (name varchar)")

    with pytest.raises(StoreInvalid, match=r"other tables .customers., not a kernelwatch store"):
        save_run(database, a_run())
    with duckdb.connect(str(database.path)) as connection:
        assert connection.execute("show tables").fetchall() == [("customers",)]


def test_a_store_of_a_newer_kernelwatch_is_refused(saved: Database) -> None:
    with saved.writing() as connection:
        connection.execute("insert into schema_version values (99, 'from_the_future', now()::timestamp)")

    with pytest.raises(StoreTooNew, match=r"schema 99, .* upgrade kernelwatch"):
        find_runs(saved)
    with pytest.raises(StoreTooNew, match="schema 99"):
        save_run(saved, a_run(11))


@pytest.mark.skipif(duckdb.__version__ < "2", reason="duckdb 1.x has one layout only")
def test_a_store_keeps_the_layout_that_older_duckdb_can_read(saved: Database) -> None:
    save_run(saved, a_run(11))

    with duckdb.connect() as connection:
        connection.execute(f"attach '{saved.path}' as db (read_only)")
        tags: dict[str, Any] = connection.execute(
            "select tags from duckdb_databases() where database_name = 'db'"
        ).fetchall()[0][0]
    assert tags["storage_version"].startswith("v1.2.0")


def test_a_wal_without_its_store_is_not_mixed_into_a_new_one(database: Database) -> None:
    database.wal_path.write_bytes(b"leftover")

    with pytest.raises(StoreInvalid, match=r"runs\.duckdb\.wal is left over"):
        save_run(database, a_run())


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the folder .*nowhere does not exist"):
        save_run(Database(tmp_path / "nowhere" / "runs.duckdb"), a_run())


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the store"):
        find_runs(Database(tmp_path))


@pytest.mark.parametrize("url", ["", " ", ":memory:", "md:runs", "postgres:dbname=x", "s3://bucket/runs"])
def test_a_place_that_is_no_file_is_refused(url: str) -> None:
    with pytest.raises(StoreInvalid, match="no place for a store"):
        Database(url)


def test_a_path_may_hold_quotes_and_spaces(tmp_path: Path) -> None:
    database = Database(tmp_path / 'it\'s a "store" ü.duckdb')

    assert save_run(database, a_run()) is True
    assert len(find_runs(database)) == 1


def test_the_environment_names_the_default_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELWATCH_STORE", str(tmp_path / "named.duckdb"))
    assert Database.default().path == tmp_path / "named.duckdb"

    monkeypatch.delenv("KERNELWATCH_STORE")
    assert Database.default().url == "kernelwatch.duckdb"


def test_waiting_ends_at_the_deadline(saved: Database) -> None:
    holder = Holder(saved, "writing")
    started = time.monotonic()

    with pytest.raises(StoreLocked):
        find_runs(Database(saved.path, lock_deadline_s=0.5))

    assert 0.5 <= time.monotonic() - started < 10
    holder.let_go()
