"""Which kernels differ between two measurements of one benchmark: pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.kernel_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """One kernel that came, went, or is launched otherwise.

    Attributes:
        name: taken apart where it is mangled; it comes from the code under test and is not to be trusted.
        what: what changed about it, in numbers and words of our own.
    """

    name: str
    what: str


def kernel_changes(before: Iterable[Kernel], after: Iterable[Kernel]) -> tuple[KernelChange, ...]:
    """What differs, by name. Kernels that are exactly alike are left out."""
    gone, came = Counter(before), Counter(after)
    gone, came = gone - came, came - gone
    changes: list[KernelChange] = []
    for name in sorted({kernel.name for kernel in (*gone, *came)}):
        old = [kernel for kernel in gone if kernel.name == name]
        new = [kernel for kernel in came if kernel.name == name]
        changes += _of_one_name(name, old, new)
    return tuple(changes)


def _of_one_name(name: str, old: Sequence[Kernel], new: Sequence[Kernel]) -> list[KernelChange]:
    shown = readable(name)
    if len(old) == len(new) == 1:
        return [KernelChange(name=shown, what=_difference(old[0], new[0]))]
    # Launched in several shapes: which became which cannot be known.
    return [
        *(KernelChange(name=shown, what=f"no longer runs ({_launch(kernel)})") for kernel in old),
        *(KernelChange(name=shown, what=f"is new ({_launch(kernel)})") for kernel in new),
    ]


def _difference(old: Kernel, new: Kernel) -> str:
    parts = []
    if old.count != new.count:
        parts.append(f"launches {old.count} -> {new.count}")
    if old.registers != new.registers:
        parts.append(f"registers {old.registers} -> {new.registers}")
    if old.shared_bytes != new.shared_bytes:
        parts.append(f"shared memory {old.shared_bytes} -> {new.shared_bytes} bytes")
    for part in ("grid", "block", "cluster"):
        mine, other = getattr(old, part), getattr(new, part)
        if mine != other:
            parts.append(f"{part} {_shape(mine)} -> {_shape(other)}")
    return ", ".join(parts)


def _launch(kernel: Kernel) -> str:
    return (
        f"launches {kernel.count}, grid {_shape(kernel.grid)}, block {_shape(kernel.block)}, "
        f"registers {kernel.registers}, shared memory {kernel.shared_bytes} bytes"
    )


def _shape(shape: tuple[int, int, int]) -> str:
    return "x".join(str(size) for size in shape)
