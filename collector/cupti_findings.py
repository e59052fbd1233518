"""What readings say about CUPTI, on which the default timer rests: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.findings import fine, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.findings import Finding, Readings

_ERROR_HINTS = (
    # What CUPTI says -> what to do. The first that fits is given.
    ("MULTIPLE_SUBSCRIBERS", "end the other profiler: nsys, ncu, cuda-gdb, or torch.profiler in the suite"),
    ("INSUFFICIENT_PRIVILEGES", "have an administrator set NVreg_RestrictProfilingToAdminUsers=0"),
    ("NOT_INITIALIZED", "update the NVIDIA driver to one of CUDA 13 (580 or newer)"),
    ("VIRTUALIZED", "have the hypervisor allow profiling for this guest"),
    ("CONFIDENTIAL_COMPUTING", "switch confidential computing off, or measure on another machine"),
    ("MIG", "switch MIG off (nvidia-smi -mig 0), or measure on a whole GPU"),
    ("WSL", "measure on Linux"),
)


def cupti_findings(known: Readings) -> Iterator[Finding]:
    """Findings about CUPTI and whoever else uses it."""
    versions = f"cupti-python {known.value('cupti_python.version') or 'missing'}, "
    versions += f"libcupti {known.value('cupti.version') or 'missing'}"
    works = known.value("cupti.works") or known.value("cupti.drop_counter_proven") is not None
    if not works:
        if "cupti.works" in known:
            yield problem(
                "CUPTI",
                f"{known.error('cupti.works')} ({versions})",
                meaning="the default timer gives no numbers; --timer events does, as a series of its own",
                remedy=_remedy(known),
            )
        return
    yield fine("CUPTI", f"known kernels left the records they should ({versions})")
    if known.value("cupti.drop_counter_proven") is False:
        yield warning(
            "CUPTI losses",
            "the counter of lost records does not count",
            meaning="a window with a record of unknown origin is refused without saying why",
            remedy="install a newer cupti-python",
        )
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"):
        if value := known.value(f"env.{name}"):
            yield warning(
                "other profilers",
                f"{name} is {value}: a tool looks into every CUDA process",
                meaning="it adds its own time, and may take the records",
                remedy="unset it, and do not start collect under nsys or ncu",
            )


def _remedy(known: Readings) -> str:
    error = known.error("cupti.works")
    for code, remedy in _ERROR_HINTS:
        if code in error:
            return remedy
    majors = {
        name: str(value).partition(".")[0]
        for name in ("cupti_python.version", "cupti.version", "torch.cuda")
        if (value := known.value(name)) not in (None, "none")
    }
    if len(set(majors.values())) > 1:
        return "install cupti-python, nvidia-cuda-cupti and torch of one CUDA: now they are of " + ", ".join(
            f"{name.removesuffix('.version')} {major}" for name, major in majors.items()
        )
    driver = known.value("gpu.cuda_driver")
    needed = majors.get("cupti.version") or majors.get("cupti_python.version")
    if driver is not None and needed is not None and int(str(driver).partition(".")[0]) < int(needed):
        return f"update the driver: it is of CUDA {driver}, and CUPTI of CUDA {needed}"
    if known.value("cupti_python.version") is None:
        return "install cupti-python for the interpreter of the code under test"
    return "end other profilers on this machine and try again, or use --timer events"
