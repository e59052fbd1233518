"""``backward_of``: the backward of one autograd node, launched by the calling thread."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAF = "AccumulateGrad"


def backward_of(out: Any) -> Callable[..., Any]:
    """The backward of the node that made ``out``, as a function to time.

    ``Tensor.backward`` and ``torch.autograd.grad`` launch from autograd's own thread, whose
    kernels carry no iteration number. The node itself, called here, launches from this thread.
    It runs without gradient recording, as in an ordinary backward pass, and keeps what it saved,
    so it can be called as often as wanted.

        x = torch.randn(64, 4096, device="cuda", requires_grad=True)
        out = torch.softmax(x, -1)
        samples = bench_kernel(backward_of(out), args=(torch.ones_like(out),))

    Args:
        out: a tensor that one operation, or one ``torch.autograd.Function``, has made. Of a
            chain only the last node is driven, and a warning says so: time a whole chain under
            ``torch.autograd.set_multithreading_enabled(False)``.

    Returns:
        A function of the gradients of the node's outputs, which gives those of its inputs.

    Raises:
        ValueError: nothing has recorded how ``out`` was made.
    """
    node = getattr(out, "grad_fn", None)
    if node is None:
        raise ValueError(
            f"a {type(out).__name__} without grad_fn has no backward: make it from inputs with "
            "requires_grad=True, outside of torch.no_grad()"
        )
    import torch

    earlier = sorted({before.name() for before, _ in node.next_functions if before is not None})
    others = [name for name in earlier if not name.endswith(_LEAF)]
    if others:
        warnings.warn(
            f"only {node.name()} is driven, not what comes before it ({', '.join(others)}): detach the "
            "inputs, or time the chain under torch.autograd.set_multithreading_enabled(False)",
            stacklevel=2,
        )
    # A Function of Python runs its backward by apply; a node of C++ is called.
    drive: Callable[..., Any] = getattr(node, "apply", None) or node

    def backward(*gradients: Any) -> Any:
        with torch.no_grad():
            return drive(*gradients)

    return backward
