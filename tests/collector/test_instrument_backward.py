"""``backward_of``: one node's backward on the calling thread; with the real autograd, on the CPU."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from collector.instrument import backward_of

SEEN: list[tuple[int, bool]] = []


class Doubled(torch.autograd.Function):
    """Writes down on which thread its backward runs, and whether gradients are recorded there."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        del ctx
        return 2 * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        del ctx
        SEEN.append((threading.get_ident(), torch.is_grad_enabled()))
        return 2 * gradients[0]


def a_leaf() -> torch.Tensor:
    return torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()


def test_it_gives_the_gradient_that_autograd_gives() -> None:
    x = a_leaf()
    gradient = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    out = torch.softmax(x, -1)

    (expected,) = torch.autograd.grad(out, x, gradient, retain_graph=True)
    actual = backward_of(out)(gradient)

    torch.testing.assert_close(actual[0] if isinstance(actual, tuple) else actual, expected)


def test_it_can_be_called_as_often_as_a_benchmark_needs() -> None:
    out = torch.softmax(a_leaf(), -1)
    backward = backward_of(out)

    results = [backward(torch.ones_like(out)) for _ in range(5)]

    assert len(results) == 5


def test_a_function_of_python_runs_on_the_calling_thread_without_recording_gradients() -> None:
    SEEN.clear()
    out: Any = Doubled.apply(a_leaf())  # type: ignore[no-untyped-call]

    thread = threading.Thread(target=backward_of(out), args=(torch.ones_like(out),))
    thread.start()
    thread.join()

    ((ran_on, recording),) = SEEN
    assert (ran_on, recording) == (thread.ident, False)


@pytest.mark.parametrize(
    "make",
    [lambda: torch.ones(3), a_leaf, lambda: 3, lambda: torch.no_grad()(torch.exp)(a_leaf())],
    ids=["constant", "leaf", "number", "no_grad"],
)
def test_something_that_nothing_was_recorded_for_has_no_backward(make: Any) -> None:
    with pytest.raises(ValueError, match="without grad_fn has no backward"):
        backward_of(make())


def test_of_a_chain_only_the_last_node_is_driven_and_that_is_said() -> None:
    chain = torch.softmax(torch.relu(a_leaf()), -1)

    with pytest.warns(UserWarning, match="only SoftmaxBackward0 is driven.*ReluBackward0"):
        backward_of(chain)
