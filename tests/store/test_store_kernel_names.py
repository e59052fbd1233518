"""Names of kernels as people write them."""

from __future__ import annotations

import pytest

from store.kernel_names import readable

SOFTMAX = (
    "_ZN2at6native43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6319cunn_SoftMaxForwardILi4EfffNS1_22"
    "SoftMaxForwardEpilogueEEEvPT2_PKT0_i"
)
FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIaEESt5arrayIPcLm1EEEEviT0_T1_"
PLAIN = ["nvjet_sm90_tst_64x16_splitK_NNT", "_Zgarbage", "", "matmul kernel (ours)", "kérnel"]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (
            SOFTMAX,
            "at::native::cunn_SoftMaxForward<4, float, float, float, at::native::SoftMaxForward",
        ),
        (
            FILL,
            "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<signed char>, std::",
        ),
        ("_Z3addPfS_i", "add"),
    ],
)
def test_a_mangled_name_is_taken_apart_without_its_parameters(name: str, start: str) -> None:
    assert readable(name).startswith(start)
    assert readable(name).endswith(("add", ">"))


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_is_not_mangled_stays_as_it_is(name: str) -> None:
    assert readable(name) == name
