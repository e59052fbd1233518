"""Which kernels differ between two measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import a_kernel

from alerts.kernels import KernelChange, kernel_changes

if TYPE_CHECKING:
    from store.records import Kernel


def said(before: list[Kernel], after: list[Kernel]) -> list[str]:
    return [f"{c.name} {c.what}" for c in kernel_changes(before, after)]


def test_the_same_kernels_in_another_order_have_not_changed() -> None:
    a, b = a_kernel(name="a"), a_kernel(name="b")

    assert kernel_changes([a, b], [b, a]) == ()


def test_every_launch_property_that_differs_is_named() -> None:
    before = a_kernel()
    after = a_kernel(registers=56, shared_bytes=2048, grid=(512, 2, 1), block=(256, 1, 1), count=3)

    assert kernel_changes([before], [after]) == (
        KernelChange(
            name="softmax_warp_forward",
            what="launches 1 -> 3, registers 40 -> 56, shared memory 0 -> 2048 bytes, "
            "grid 1024x1x1 -> 512x2x1, block 128x1x1 -> 256x1x1",
        ),
    )


def test_a_cluster_that_is_used_now_is_named() -> None:
    assert said([a_kernel()], [a_kernel(cluster=(2, 1, 1))]) == [
        "softmax_warp_forward cluster 0x0x0 -> 2x1x1"
    ]


def test_kernels_that_came_and_went_are_named_with_their_launch() -> None:
    launch = "(launches 1, grid 1024x1x1, block 128x1x1, registers 40, shared memory 0 bytes)"

    assert said([a_kernel(name="old")], [a_kernel(name="new")]) == [
        f"new is new {launch}",
        f"old no longer runs {launch}",
    ]


def test_of_several_launches_of_one_kernel_only_those_that_differ_are_named() -> None:
    small, large = a_kernel(grid=(8, 1, 1)), a_kernel(grid=(64, 1, 1))

    assert said([small, large], [small, a_kernel(grid=(32, 1, 1))]) == [
        "softmax_warp_forward grid 64x1x1 -> 32x1x1"
    ]
