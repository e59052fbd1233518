"""The parent's handle on a worker host: what cannot be started, what it says, what it leaves."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from real_workers import a_job
from suite_files import a_suite_file

from collector.errors import WorkerError
from collector.host import Host, memory_limit_bytes, resident_bytes
from collector.session import Session

MIB = 2**20


def start(python: str, root: Path) -> None:
    """Start a session with this interpreter, which is expected to fail."""
    suite = a_suite_file(root, "def bench_x(): return lambda: None")
    Session(python, a_job(root, suite)).close()


def an_executable(folder: Path, text: str) -> str:
    path = folder / "interpreter"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"cannot start /no/such/python .*No such file.*give --python"):
        start("/no/such/python", tmp_path)


def test_a_file_that_may_not_be_executed_is_no_interpreter(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("")

    with pytest.raises(WorkerError, match="Permission denied; give --python an interpreter"):
        start(str(tmp_path / "python"), tmp_path)


def test_a_program_that_is_not_python_is_shown_with_what_it_printed(tmp_path: Path) -> None:
    echo = an_executable(tmp_path, '#!/bin/sh\necho "I am no Python"\n')

    with pytest.raises(WorkerError) as told:
        start(echo, tmp_path)

    assert f"the worker ({echo}) could not load the suites: it ended with status 0" in str(told.value)
    assert "Give --python an interpreter of Python 3.10 or newer" in str(told.value)
    assert str(told.value).endswith("I am no Python")


def test_an_interpreter_that_dies_at_once_is_shown_with_its_status(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"it ended with status 3\..*\nbroken$"):
        start(an_executable(tmp_path, "#!/bin/sh\necho broken >&2\nexit 3\n"), tmp_path)


def test_a_suite_that_kills_its_interpreter_on_import_is_told_by_signal(
    bare_python: str, tmp_path: Path
) -> None:
    suite = a_suite_file(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")

    with pytest.raises(WorkerError, match="it ended with status -9"):
        Session(bare_python, a_job(tmp_path, suite))


def test_an_interpreter_is_meant_from_the_folder_the_user_stands_in(
    bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(bare_python).parent.parent)

    start("bin/python", tmp_path)  # the worker itself starts in tmp_path


def test_an_interpreter_by_name_alone_is_looked_up_on_path(
    bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(bare_python).parent))

    start("python", tmp_path)


def test_the_environment_of_a_virtual_environment_is_kept(bare_python: str, tmp_path: Path) -> None:
    # Its interpreter is a link; the file that it leads to knows nothing of the environment.
    suite = a_suite_file(
        tmp_path,
        f"""
        import sys
        assert sys.prefix == {str(Path(bare_python).parents[1])!r}, sys.prefix
        def bench_x(): return lambda: None
        """,
    )
    session = Session(bare_python, a_job(tmp_path, suite))
    session.close()

    assert session.loaded.failures == ()


def test_words_that_are_no_message_are_an_error(tmp_path: Path) -> None:
    # Through a shell, for the first line of a script cannot name an interpreter with a space in its path.
    code = "import os, sys; os.write(int(sys.argv[2]), bytes([104, 101, 108, 108, 111, 10]))"
    chatty = an_executable(tmp_path, f"#!/bin/sh\nexec '{sys.executable}' -c '{code}' \"$@\"\n")
    host = Host(chatty, a_job(tmp_path), memory_limit_bytes=100 * MIB)

    with pytest.raises(WorkerError, match=r"the worker sent no message but b'hello'"):
        host.answer(10)
    host.close()


def test_a_host_that_says_nothing_is_late_and_one_that_ended_is_gone(tmp_path: Path) -> None:
    silent = Host(
        an_executable(tmp_path, "#!/bin/sh\nread job\n"), a_job(tmp_path), memory_limit_bytes=100 * MIB
    )
    sleeping = Host("/bin/sh", a_job(tmp_path), memory_limit_bytes=100 * MIB)

    assert silent.answer(10) == {"type": "gone"}
    assert silent.exit_code() == 0
    sleeping.close()
    silent.close()


def test_a_host_that_answers_too_late_is_told_apart_from_one_that_ended(tmp_path: Path) -> None:
    slow = Host(
        an_executable(tmp_path, "#!/bin/sh\nexec sleep 60\n"), a_job(tmp_path), memory_limit_bytes=MIB
    )

    assert slow.answer(0.05) == {"type": "late"}
    assert not slow.runs_pass
    slow.close()
    assert slow.exit_code() == -9


def test_requests_to_a_host_that_has_ended_do_not_raise(tmp_path: Path) -> None:
    host = Host(an_executable(tmp_path, "#!/bin/sh\nexit 0\n"), a_job(tmp_path), memory_limit_bytes=MIB)
    host.answer(10)

    host.tell({"do": "probe"})

    assert host.answer(10) == {"type": "gone"}
    host.close()


def test_no_descriptor_is_left_open_by_a_host_that_could_not_be_started(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(3):
        with pytest.raises(WorkerError):
            Host("/no/such/python", a_job(tmp_path), memory_limit_bytes=MIB)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_memory_of_a_process_is_read_and_of_one_that_ended_is_nothing() -> None:
    assert resident_bytes(os.getpid()) > MIB
    assert resident_bytes(2**22 + 1) == 0  # above the largest id that Linux gives


def test_a_worker_may_hold_most_of_the_available_memory() -> None:
    text = Path("/proc/meminfo").read_text()
    found = re.search(r"MemAvailable:\s+(\d+) kB", text)
    assert found is not None
    available = int(found[1]) * 1024

    assert memory_limit_bytes() == pytest.approx(0.9 * available, rel=0.2)


def test_the_log_of_a_host_is_cut_to_its_end(bare_python: str, tmp_path: Path) -> None:
    source = "import os\nprint('first')\nprint('x' * 10_000)\nprint('last', flush=True)\nos._exit(0)"
    suite = a_suite_file(tmp_path, source)
    host = Host(bare_python, a_job(tmp_path, suite), memory_limit_bytes=2**30)
    while host.answer(60)["type"] != "gone":
        pass

    tail = host.log_tail()
    host.close()
    assert tail.endswith("last")
    assert len(tail) <= 4000
    assert "first" not in tail
