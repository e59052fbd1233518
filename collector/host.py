"""The parent's handle on a worker host: its process, its messages, its log, its memory."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector import worker_entry
from collector.errors import MachineError, WorkerError
from collector.protocol import parse, send

if TYPE_CHECKING:
    from collector.protocol import Job

_TICK_S = 0.1  # how often a running worker's memory is looked at
_LOG_TAIL_BYTES = 4000
_LOG_LIMIT_BYTES = 64 * 1024 * 1024
_MEMORY_SHARE = 0.9
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Host:
    """A worker host process and the pipe its messages come through.

    Args:
        python: the interpreter of the code under test.
        memory_limit_bytes: a pass that holds more is killed.

    Attributes:
        exceeded: why the host killed the running pass by itself, or None.
    """

    def __init__(self, python: str, job: Job, *, memory_limit_bytes: int) -> None:
        self._memory_limit_bytes = memory_limit_bytes
        # A path is meant from where the user stands, not from the root that the host starts in.
        python = os.path.abspath(python) if os.sep in python else python  # noqa: PTH100 - a venv's link stays
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the host
        read_end, write_end = os.pipe()
        environment = os.environ | {
            # Lets torch look for a GPU without initialising CUDA, which would forbid forking.
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "PYTHONUNBUFFERED": "1",
        }
        try:
            self._process = subprocess.Popen(
                [python, worker_entry.__file__, str(write_end)],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(write_end,),
                cwd=job["root"],
                env=environment,
                start_new_session=True,  # Ctrl-C reaches the parent, which decides
                text=True,
            )
        except OSError as error:
            self._log.close()
            os.close(read_end)
            self._log.close()
            raise WorkerError(
                f"cannot start {python} in {job['root']}: {error.strerror}; give --python an interpreter"
            ) from error
        finally:
            os.close(write_end)
        self._pipe = os.fdopen(read_end, "rb", buffering=0)
        self._pending = b""
        self._running_pid: int | None = None
        self._log_mark = 0
        self.exceeded: str | None = None
        self.tell(job)

    def tell(self, message: object) -> None:
        """Send a job or a request."""
        if self._process.stdin is None:
            raise AssertionError("the host was started with a pipe for its input")
        with contextlib.suppress(BrokenPipeError):  # its end is seen when its answer is awaited
            send(self._process.stdin, message)

    def answer(self, limit_s: float) -> dict[str, Any]:
        """The next message, or ``{"type": "late"}`` after the limit, or ``{"type": "gone"}`` at its end.

        Raises:
            WorkerError: what came is no message.
        """
        deadline = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = deadline - time.monotonic()
                if left <= 0:
                    return {"type": "late"}
                if selector.select(min(left, _TICK_S)):
                    chunk = self._pipe.read(1 << 20)
                    if not chunk:
                        return {"type": "gone"}
                    self._pending += chunk
                self._check_limits()
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            message = parse(line.decode())
        except ValueError as error:
            raise WorkerError(f"the worker sent no message but {line[:80]!r}: {error}") from error
        if message.get("type") == "begin":
            self._running_pid = message["pid"]
            self._log_mark = message["log_bytes"]
            self.exceeded = None
        elif message.get("type") == "done":
            self._running_pid = None  # the number may soon be that of somebody else's process
        return message

    def _check_limits(self) -> None:
        """Kill the running pass when it would take the machine down with it."""
        if self._running_pid is None or self.exceeded is not None:
            return
        if resident_bytes(self._running_pid) > self._memory_limit_bytes:
            self.exceeded = f"it held more than {self._memory_limit_bytes / 2**30:.1f} GiB of memory"
        elif self._log_size() - self._log_mark > _LOG_LIMIT_BYTES:
            self.exceeded = f"it printed more than {_LOG_LIMIT_BYTES >> 20} MiB"
        else:
            return
        self.kill_pass()

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    @property
    def runs_pass(self) -> bool:
        """Whether a process of this host has begun a case and is not known to have ended."""
        return self._running_pid is not None

    def kill_pass(self) -> None:
        """Kill the process that runs the current case."""
        if self._running_pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._running_pid, signal.SIGKILL)

    def log_tail(self) -> str:
        """The last lines written since the current case began."""
        size = self._log_size()
        start = max(self._log_mark, size - _LOG_TAIL_BYTES)
        return os.pread(self._log.fileno(), size - start, start).decode(errors="replace").strip()

    def exit_code(self) -> int | None:
        """The host's exit status once its pipe has closed; None while it runs on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(5)
        return None

    def close(self) -> None:
        """End the host and whatever it started; once is enough."""
        if self._pipe.closed:
            return  # its number may be that of somebody else's process by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._pipe.close()
        self._log.close()


def resident_bytes(pid: int) -> int:
    """Memory a process holds; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def memory_limit_bytes() -> int:
    """What one worker may hold: most of the memory that is available now.

    Raises:
        MachineError: this is no Linux.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise MachineError("there is no /proc/meminfo: kernelwatch measures on Linux") from error
    available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return int(available * 1024 * _MEMORY_SHARE)
