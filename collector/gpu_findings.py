"""What readings say about the GPU, its driver and CUPTI: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cupti_findings import cupti_findings
from collector.findings import fine, problem, warning
from collector.pacing import REASONS_BENIGN, REASONS_HARDWARE, reason_names
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.findings import Finding, Readings

_PROHIBITED = 2  # NVML_COMPUTEMODE_PROHIBITED
_VGPU = 2  # NVML_GPU_VIRTUALIZATION_MODE_VGPU: a share of a card
_HIDES_ALL = ("", "-1")


def gpu_findings(known: Readings, *, timer: str, has_gpu: bool) -> Iterator[Finding]:
    """Findings about the GPU.

    Args:
        known: readings.
        timer: what would be timed with.
        has_gpu: whether a GPU was found.
    """
    if not has_gpu:
        yield from _no_gpu(known, timer)
        return
    name, uuid = known.value("gpu.name"), known.value("gpu.uuid")
    if uuid is None:
        yield problem(
            "GPU",
            f"it was found and then lost: {known.error('gpu.uuid')}",
            meaning="it cannot be measured",
            remedy="reset it (nvidia-smi --gpu-reset) or reboot",
        )
        return
    yield fine("GPU", f"{name} {uuid}")
    for look in (_driver, _cuda, _others, _mode, _mig, _virtual, _clocks, _limits, _power, _counters, _ecc):
        yield from look(known)
    yield from _persistence(known)
    yield from _permissions(known)
    if timer == "cupti":
        yield from cupti_findings(known)
    elif timer == "wall":
        yield warning(
            "timer",
            "the host clock was asked for",
            meaning="it sees launches and waiting too: tier C",
            remedy="leave --timer out",
            limit=Tier.C,
        )


def _no_gpu(known: Readings, timer: str) -> Iterator[Finding]:
    visible = known.value("env.CUDA_VISIBLE_DEVICES")
    error, nvml_error = known.error("gpu.found"), known.error("nvml.works")
    if "worker.died" in known and "gpu.found" not in known:
        return  # nobody had the time to look
    if error:
        yield problem("GPU", error, meaning="the GPU asked for cannot be measured", remedy=_why_hidden(known))
    elif timer in ("cupti", "events"):
        yield problem(
            "GPU",
            f"none was found: {nvml_error or 'NVML lists none'}",
            meaning=f"timer {timer} needs an NVIDIA GPU",
            remedy=_why_hidden(known) or "use --timer wall",
        )
    elif visible is not None and visible.strip() in _HIDES_ALL:
        yield warning(
            "GPU",
            f"CUDA_VISIBLE_DEVICES is {visible!r} and hides every GPU",
            limit=Tier.C,
            meaning="calls are timed by the host clock: tier C",
            remedy="unset it to measure a GPU",
        )
    else:
        yield warning(
            "GPU",
            f"none was found: {nvml_error or 'NVML lists none'}",
            limit=Tier.C,
            meaning="calls are timed by the host clock: tier C",
            remedy=_why_hidden(known),
        )


def _why_hidden(known: Readings) -> str:
    """What to do about a GPU that is not seen."""
    error = known.error("nvml.works") + known.error("gpu.found")
    if "mismatch" in error.lower():
        return "the driver was updated while its kernel module stayed loaded: reboot, or reload the module"
    if known.value("host.kernel_module") and not known.value("host.device_files"):
        inside = "start this container with --gpus all (or the NVIDIA device plugin)"
        todo = inside if known.value("host.container") else "run nvidia-modprobe -u -c=0"
        return f"the driver is loaded but there is no /dev/nvidia*: {todo}"
    if "cannot be imported" in error:
        return "install nvidia-ml-py for the interpreter of the code under test"
    if "env.CUDA_VISIBLE_DEVICES" in known and known.error("gpu.found"):
        return "correct or unset CUDA_VISIBLE_DEVICES, or give --gpu a UUID that nvidia-smi -L shows"
    if known.value("host.container"):
        return "if the machine has a GPU, start this container with --gpus all"
    return "if the machine has an NVIDIA GPU, install its driver"


def _driver(known: Readings) -> Iterator[Finding]:
    driver, cuda = known.value("gpu.driver"), known.value("gpu.cuda_driver")
    if driver is not None:
        yield fine("driver", driver if cuda is None else f"{driver}, up to CUDA {cuda}")


def _cuda(known: Readings) -> Iterator[Finding]:
    if "cuda.works" in known and (error := known.error("cuda.works")):
        yield problem(
            "CUDA",
            f"torch cannot use the GPU: {error}",
            meaning="nothing can run on it",
            remedy="match torch and driver: torch must be built for a CUDA that the driver supports",
        )


def _others(known: Readings) -> Iterator[Finding]:
    count = known.value("gpu.processes")
    if count:
        yield problem(
            "other processes",
            f"{count} use this GPU",
            meaning="every window measured beside them is refused",
            remedy="end them (nvidia-smi shows which), or choose another GPU with --gpu",
        )
    elif count is None:
        yield warning(
            "other processes",
            f"they cannot be listed: {known.error('gpu.processes')}",
            meaning="work of others on this GPU would go unseen",
            remedy="keep the GPU to the benchmark alone",
        )
    else:
        yield fine("other processes", "none")


def _mode(known: Readings) -> Iterator[Finding]:
    if known.value("gpu.compute_mode") == _PROHIBITED:
        yield problem(
            "compute mode",
            "prohibited",
            meaning="no process may use the GPU",
            remedy=f"nvidia-smi -i {known.value('gpu.uuid')} -c DEFAULT, as administrator",
        )


def _mig(known: Readings) -> Iterator[Finding]:
    if known.value("gpu.mig"):
        yield problem(
            "MIG",
            "the GPU is cut into instances",
            meaning="instances share clock and power, so what the others do would be measured too",
            remedy=f"nvidia-smi -i {known.value('gpu.uuid')} -mig 0, as administrator, or choose a whole GPU",
        )


def _virtual(known: Readings) -> Iterator[Finding]:
    if known.value("gpu.virtualization_mode") == _VGPU:
        yield warning(
            "virtualisation",
            "this is a share of a GPU (vGPU)",
            limit=Tier.B,
            meaning="other guests take time and power, and cannot be seen from here",
            remedy="measure on a GPU of your own, or one that is passed through whole",
        )


def _clocks(known: Readings) -> Iterator[Finding]:
    now, top = known.value("gpu.sm_clock_mhz"), known.value("gpu.sm_clock_max_mhz")
    chosen = known.value("gpu.sm_clock_application_mhz")
    if now is None:
        yield warning(
            "clocks",
            f"the SM clock cannot be read: {known.error('gpu.sm_clock_mhz')}",
            limit=Tier.C,
            meaning="nothing proves that it stood still: tier C",
            remedy="update the driver",
        )
    elif chosen is not None and top is not None and chosen < top:
        yield warning(
            "clocks",
            f"SM clock set to {chosen} MHz of {top} MHz by application clocks",
            meaning="numbers hold for this clock only, and are slower than the card can be",
            remedy=f"nvidia-smi -i {known.value('gpu.uuid')} -rac, as administrator, to give them back",
        )
    else:
        yield fine("clocks", f"SM clock {now} MHz now" + ("" if top is None else f", {top} MHz at most"))


def _limits(known: Readings) -> Iterator[Finding]:
    reasons = known.value("gpu.clock_reasons")
    if reasons is None:
        if "gpu.clock_reasons" in known:
            yield warning(
                "throttling",
                known.error("gpu.clock_reasons"),
                meaning="a limit shows only where the clock falls",
                remedy="update the driver",
            )
    elif reasons & REASONS_HARDWARE:
        yield warning(
            "throttling",
            f"now: {reason_names(reasons & ~REASONS_BENIGN)}",
            limit=Tier.C,
            meaning="the hardware protects itself: tier C",
            remedy="look after cooling and power supply",
        )
    elif reasons & ~REASONS_BENIGN:
        yield warning(
            "throttling",
            f"now, though nothing runs: {reason_names(reasons & ~REASONS_BENIGN)}",
            limit=Tier.B,
            meaning="kept samples would be limited: tier B",
            remedy="wait until the GPU has cooled, or raise its power limit",
        )
    else:
        yield fine("throttling", "nothing limits the clock now")


def _power(known: Readings) -> Iterator[Finding]:
    limit, default = known.value("gpu.power_limit_w"), known.value("gpu.power_limit_default_w")
    if limit is None:
        return
    if default is not None and limit < default:
        yield warning(
            "power limit",
            f"{limit:g} W, {default:g} W by default",
            meaning="the clock falls sooner, so more pauses are needed and numbers hold for this limit only",
            remedy=f"nvidia-smi -i {known.value('gpu.uuid')} -pl {default:g}, as administrator",
        )
    else:
        yield fine("power limit", f"{limit:g} W")


def _counters(known: Readings) -> Iterator[Finding]:
    prefix = "gpu.throttle."
    names = ("hw_power_brake", "hw_thermal", "power_cap", "sync_boost", "thermal")
    missing = [name for name in names if known.error(prefix + name)]
    if missing:
        yield warning(
            "throttle counters",
            f"not counted by this GPU or driver: {', '.join(missing)}",
            meaning="a limit between two samples would go unseen",
            remedy="update the driver, if it is old",
        )
    else:
        yield fine("throttle counters", "all can be read")


def _ecc(known: Readings) -> Iterator[Finding]:
    ecc = known.value("gpu.ecc")
    if ecc is not None:
        yield fine("ECC", "on" if ecc else "off")


def _persistence(known: Readings) -> Iterator[Finding]:
    if known.value("gpu.persistence_mode") is False:
        yield warning(
            "persistence",
            "off: the driver unloads when no process uses the GPU",
            meaning="every pass starts slower, and --clocks locked is refused because the lock would be lost",
            remedy=f"nvidia-smi -i {known.value('gpu.uuid')} -pm 1, as administrator",
        )


def _permissions(known: Readings) -> Iterator[Finding]:
    may = known.value("host.may_lock_clocks")
    if may is not None:
        yield fine(
            "permissions",
            "may lock clocks (root or CAP_SYS_ADMIN)"
            if may
            else "may not lock clocks, which held clocks, the default, do not need",
        )
