"""The worker: loads the suites once, then runs each pass in a fresh process.

The host has imported torch and the suites without touching CUDA, so a pass is a fork that
costs a third of a second instead of a fresh interpreter's five. Where the suites have
touched CUDA or started threads, forking would not be safe: the host says so, and its parent
starts a fresh host for every pass.

Only the measuring part of the collector is loaded here; store, click and SciPy are not, for
the interpreter is that of the code under test.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from collector.clocks import serve_clocks
from collector.errors import CollectorError, MachineError
from collector.examination import examine
from collector.passes import Host, failure, run_pass
from collector.probe import probe_gpu, software_context
from collector.protocol import PROTOCOL_VERSION, Request, parse, send
from collector.suite import BenchmarkCase, SuiteError, load_suites
from collector.telemetry import NvmlTelemetry, find_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PR_SET_PDEATHSIG = 1
_CUDA_ERROR_NOT_INITIALIZED = 3
_OOM_SCORE_MAX = b"1000"
_LOOK_EVERY_S = 0.02
_PIPE_BYTES = 65_536


def main() -> None:
    """Serve one parent until it says stop or closes the pipe."""
    _die_with_parent()
    results = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    faulthandler.enable()  # a crash in native code leaves its Python stack in the log
    os.dup2(2, 1)  # prints of benchmarks go to the log, whatever they believe stdout to be
    try:
        job: Any = parse(sys.stdin.readline())
        if job.get("examine"):
            for readings in examine(job):
                send(results, {"type": "examined", "readings": readings})
            send(results, {"type": "done", "status": 0})
            return
        host = _load(job, results)
        for line in sys.stdin:
            request = parse(line)
            if request["do"] == "stop":
                break
            _serve(host, request)
    except CollectorError as error:
        send(results, {"type": "fatal", "kind": type(error).__name__, "message": str(error)})


def _load(job: Any, results: IO[str]) -> Host:
    """Find the GPU, import torch and the suites, and say what there is."""
    log = os.dup(2)
    found = _in_child(lambda: find_gpu(job["gpu"], job["visible_devices"]))
    gpu_uuid, gpu_name = (None, None) if found is None else (found["uuid"], found["name"])
    timer = _choose_timer(job["timer"], gpu_uuid)
    if gpu_uuid is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu_uuid
    with contextlib.suppress(ImportError):
        import torch  # imported here, so that every forked pass finds it loaded

        torch.cuda.is_available()  # suites ask for it; the thread it may start is then not theirs
    if timer == "cupti":
        with contextlib.suppress(ImportError):
            import cupti.cupti  # noqa: F401
    threads_before = _thread_count()
    cases, errors = load_suites([Path(path) for path in job["suites"]], root=Path(job["root"]))
    chosen = {case.key: case for case in cases}
    subjects: dict[object, str] = {}
    for case in cases:
        subjects.setdefault(case.workload, case.key)
    send(
        results,
        {
            "type": "loaded",
            "protocol": PROTOCOL_VERSION,
            "pid": os.getpid(),
            "timer": timer,
            "gpu_uuid": gpu_uuid,
            "gpu_name": gpu_name,
            "fork_refused": _fork_refused(threads_before),
            "cases": [_describe(case, subjects) for case in cases],
            "errors": [failure(error, None) for error in errors],
            "context": software_context(),
        },
    )
    return Host(job, timer, gpu_uuid, chosen, results, log)


def _choose_timer(asked: str, gpu_uuid: str | None) -> str:
    if asked == "auto":
        return "cupti" if gpu_uuid else "wall"
    if asked in ("cupti", "events") and gpu_uuid is None:
        raise MachineError(
            f"timer {asked} needs an NVIDIA GPU and none was found; on a machine without one use --timer wall"
        )
    return asked


def _describe(case: BenchmarkCase, subjects: Mapping[object, str]) -> dict[str, Any]:
    """A case as its parent needs to know it. Bad flops or bytes come out as an error of the case."""
    described: dict[str, Any] = {
        "key": case.key,
        "benchmark": case.name,
        "parameters": dict(case.parameters),
        "label": case.label,
        "source": case.source,
        "subject": subjects[case.workload],
        "tags": list(case.options.tags),
        "renamed_from": case.options.renamed_from,
        "time_limit_s": case.options.time_limit_s,
        "flops": None,
        "bytes_moved": None,
        "error": None,
    }
    try:
        described["flops"] = case.flops()
        described["bytes_moved"] = case.bytes_moved()
    except SuiteError as error:
        described["error"] = failure(error, case)
    return described


def _serve(host: Host, request: Any) -> None:
    """Do one request in a forked child, or here when forking is not safe."""
    if not request.get("fork", True):
        _work(host, request)
        send(host.results, {"type": "done", "status": 0})
        return
    host.results.flush()
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        host.tells_imports = tells
        _child(host, request)
    os.close(tells)
    try:
        status = _import_along(pid, told)
    finally:
        os.close(told)
    send(host.results, {"type": "done", "status": status})


def _import_along(pid: int, told: int) -> int:
    """Wait for a pass, and meanwhile import what it had to import: later passes find it loaded.

    Parts of torch come only when first used; the first backward pass of torch 2.11 spends
    almost four seconds importing SymPy. The host does so beside the pass, on another core.

    Args:
        pid: the process of the pass.
        told: descriptor from which the names of modules come, one a line.

    Returns:
        The exit status of the pass.
    """
    unfinished = b""
    while True:
        if not select.select([told], [], [], _LOOK_EVERY_S)[0]:
            # The pass may have left processes behind that still hold the other end.
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            continue
        words = os.read(told, _PIPE_BYTES)
        if not words:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        *names, unfinished = (unfinished + words).split(b"\n")
        for name in names:
            with contextlib.suppress(ImportError):
                importlib.import_module(name.decode())


def _work(host: Host, request: Request) -> None:
    if request["do"] == "probe":
        _probe(host)
    elif request["do"] == "pass":
        run_pass(host, request)
    else:
        _control_clocks(host, request)


def _child(host: Host, request: Request) -> None:
    """Run in the forked process and leave without the interpreter's goodbyes, which are the host's."""
    status = 1
    try:
        _die_with_parent()
        _work(host, request)
        status = 0
    except CollectorError as error:
        send(host.results, {"type": "fatal", "kind": type(error).__name__, "message": str(error)})
    except BaseException:  # noqa: BLE001 - a bug of ours must reach the log, and the exit status
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a benchmark may have closed it, or put None there
                stream.flush()
        os._exit(status)


def _probe(host: Host) -> None:
    """Read the context of the machine and prove that the timer works."""
    context: dict[str, Any] = {}
    proven = False
    if host.gpu_uuid is not None:
        context = dict(NvmlTelemetry(host.gpu_uuid).context())
        readings, proven = probe_gpu(with_cupti=host.timer == "cupti")
        context |= readings
    send(host.results, {"type": "probed", "context": context, "drop_counter_proven": proven})


def _control_clocks(host: Host, request: Request) -> None:
    """Read, lock, unlock or verify the clocks of the GPU."""
    if host.gpu_uuid is None:
        raise MachineError("there is no GPU whose clocks could be read or changed")
    send(host.results, serve_clocks(host.gpu_uuid, request))


def _in_child(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a forked process, so that the host itself stays clean, and return its result."""
    import json

    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            result = work()
            reply = {"ok": None if result is None else vars(result)}
        except CollectorError as error:
            reply = {"error": str(error), "kind": type(error).__name__}
        except BaseException as error:  # noqa: BLE001 - the child must answer, whatever happens
            reply = {"error": f"{type(error).__name__}: {error}", "kind": "MachineError"}
        os.write(write_end, json.dumps(reply).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    answer = json.loads(text) if text else {"error": "the process that looked for GPUs died", "kind": ""}
    if "error" in answer:
        raise MachineError(answer["error"])
    return answer["ok"]


def _fork_refused(threads_before: int) -> str | None:
    """Why this process must not be forked, or None."""
    if _thread_count() > threads_before:
        return "importing the suites started threads"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "importing the suites initialised CUDA"
    with contextlib.suppress(OSError):
        count = ctypes.c_int(0)
        answer = ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
        if answer != _CUDA_ERROR_NOT_INITIALIZED:
            return "importing the suites initialised the CUDA driver"
    return None


def _thread_count() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - one number, read often


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, and be the first to go when memory ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_OOM_SCORE_MAX)
