"""What readings say about everything but the GPU: interpreter, torch, system, store: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.findings import fine, problem, warning
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.findings import Finding, Readings

_GIB = 2**30
_MEMORY_LOW_BYTES = 2 * _GIB
_DISK_LOW_BYTES = _GIB
_DISK_FULL_BYTES = 50 * 2**20  # a run is some hundred kilobytes; DuckDB needs room to checkpoint


def host_findings(known: Readings, *, has_gpu: bool) -> Iterator[Finding]:
    """Findings about the machine around the GPU."""
    yield from _worker(known)
    yield from _torch(known, has_gpu=has_gpu)
    yield from _system(known)
    yield from _memory(known)
    yield from _disk(known)
    yield from _git(known)


def _worker(known: Readings) -> Iterator[Finding]:
    if error := known.value("worker.died"):
        yield problem(
            "worker",
            f"the process that examines the machine {error}",
            meaning="a benchmark would end the same way",
            remedy="give --python an interpreter that works and can import torch",
        )
    if version := known.value("python.version"):
        where = known.value("python.executable")
        yield fine("python", version if where is None else f"{version} at {where}")


def _torch(known: Readings, *, has_gpu: bool) -> Iterator[Finding]:
    if "torch.version" not in known:
        return
    version, cuda = known.value("torch.version"), known.value("torch.cuda")
    if version is None:
        what = f"torch cannot be imported: {known.error('torch.import') or known.error('torch.version')}"
        remedy = "install torch for the interpreter of the code under test, or choose it with --python"
        if has_gpu:
            yield problem("torch", what, meaning="the GPU is reached by way of torch", remedy=remedy)
        else:
            yield warning(
                "torch",
                what,
                meaning="the built-in suite needs it; suites of your own may not",
                remedy=remedy,
            )
    elif has_gpu and cuda in (None, "none"):
        yield problem(
            "torch",
            f"{version} is built without CUDA",
            meaning="nothing can run on the GPU",
            remedy="install a CUDA build of torch (https://pytorch.org/get-started)",
        )
    else:
        yield fine("torch", version if cuda in (None, "none") else f"{version}, built for CUDA {cuda}")


def _system(known: Readings) -> Iterator[Finding]:
    if known.value("host.wsl"):
        yield warning(
            "WSL",
            "this is Linux under Windows",
            meaning="CUPTI is a preview there, other processes cannot be listed, and clocks can only be "
            "locked from Windows",
            remedy="measure on Linux; to lock clocks run nvidia-smi.exe as administrator on the host",
            limit=Tier.B,
        )


def _memory(known: Readings) -> Iterator[Finding]:
    room = known.value("host.worker_memory_bytes")
    if room is None:
        return
    message = f"{room / _GIB:.1f} GiB for a worker"
    if room < _MEMORY_LOW_BYTES:
        yield warning(
            "memory",
            message,
            meaning="a benchmark that takes most of it is ended as a failure",
            remedy="close other programs, or measure on a machine with more memory",
        )
    else:
        yield fine("memory", message)


def _disk(known: Readings) -> Iterator[Finding]:
    if "store.free_bytes" not in known:
        return
    free, folder = known.value("store.free_bytes"), known.value("store.folder")
    if free is None:
        if error := known.error("store.free_bytes"):
            yield warning(
                "store",
                f"its folder cannot be looked at: {error}",
                meaning="the run may not be kept",
                remedy="give --store a path whose folder exists and may be written to",
            )
        return
    message = f"{free / _GIB:.1f} GiB free in {folder}"
    if free < _DISK_FULL_BYTES:
        yield problem(
            "store",
            message,
            meaning="the run could not be kept",
            remedy="make room, or give --store a path on another disk",
        )
    elif free < _DISK_LOW_BYTES:
        yield warning(
            "store",
            message,
            meaning="there is room for few more runs",
            remedy="make room, or give --store a path on another disk",
        )
    else:
        yield fine("store", message)


def _git(known: Readings) -> Iterator[Finding]:
    if version := known.value("git.version"):
        yield fine("git", version)
    elif "git.version" in known:
        yield warning(
            "git",
            f"git does not answer: {known.error('git.version')}",
            meaning="a run would belong to no commit, and could not be compared with others",
            remedy="install git",
        )
