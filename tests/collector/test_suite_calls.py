"""Setting a case up, locating what it raises, and checking what it returns."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import TYPE_CHECKING

import pytest
from suite_files import a_suite_file, the_case

from collector.suite import SuiteError, check_output, locate, set_up

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _import_path_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())


def setup_error(root: Path, source: str) -> SuiteError:
    with pytest.raises(SuiteError) as caught:
        set_up(the_case(root, source))
    return caught.value


# Set-up


def test_a_plain_function_is_the_call(tmp_path: Path) -> None:
    call = set_up(the_case(tmp_path, "def bench_x(): return lambda: 41 + 1\n"))

    assert call() == 42
    assert (call.reference, call.reset) == (None, None)


def test_any_callable_object_is_a_call(tmp_path: Path) -> None:
    source = """
        class Layer:
            def __call__(self): return 7
        def bench_x(): return Layer()
        """

    assert set_up(the_case(tmp_path, source))() == 7


def test_a_call_carries_its_reset(tmp_path: Path) -> None:
    source = """
        from collector.suite import Call
        def bench_x():
            items = [3, 1, 2]
            return Call(lambda: (items.sort(), list(items))[1], reset=lambda: items.reverse())
        """

    call = set_up(the_case(tmp_path, source))

    assert call() == [1, 2, 3]
    assert call.reset is not None
    call.reset()
    assert call() == [1, 2, 3]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", "bench_x returned None, which cannot be called: return the function to time"),
        ("[1.0]", "bench_x returned a list, which cannot be called"),
        ("5", "bench_x returned an int, which cannot be called"),
        ("coroutine", "bench_x returned an async function: calling it only makes an object"),
        ("generator", "bench_x returned a generator function: calling it only makes an object"),
    ],
)
def test_what_cannot_be_timed_is_reported_with_the_remedy(
    tmp_path: Path, returned: str, message: str
) -> None:
    source = f"""
        async def coroutine(): pass
        def generator(): yield
        def bench_x():
            return {returned}
        """

    error = setup_error(tmp_path, source)

    assert message in error.message
    assert "`return lambda: torch.softmax(x, -1)`" in error.message
    assert (error.stage, error.kind, error.source) == ("setup", "not-callable", "bench_example.py:4")


def test_set_up_that_raises_is_reported_with_its_deepest_line(tmp_path: Path) -> None:
    source = """
        def allocate():
            raise MemoryError("no room for 9 TB")
        def bench_x():
            return allocate()
        """

    error = setup_error(tmp_path, source)

    assert (error.stage, error.kind, error.message) == ("setup", "MemoryError", "no room for 9 TB")
    assert error.source == "bench_example.py:3"
    assert "return allocate()" in error.log
    assert "calls.py" not in error.log


def test_an_exception_without_a_message_is_named(tmp_path: Path) -> None:
    assert (
        setup_error(tmp_path, "def bench_x(): assert False\n").message == "AssertionError without a message"
    )


def test_set_up_that_exits_costs_this_case_alone(tmp_path: Path) -> None:
    assert setup_error(tmp_path, "def bench_x(): raise SystemExit(1)\n").kind == "SystemExit"


def test_ctrl_c_in_set_up_is_no_fault_of_the_benchmark(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        set_up(the_case(tmp_path, "def bench_x(): raise KeyboardInterrupt\n"))


def test_a_benchmark_can_say_that_it_is_not_applicable(tmp_path: Path) -> None:
    source = """
        from collector.suite import NotApplicable
        def bench_x():
            raise NotApplicable("needs two GPUs, and there is one")
        """

    error = setup_error(tmp_path, source)

    assert (error.kind, error.message) == ("not-applicable", "needs two GPUs, and there is one")


def test_a_failed_set_up_keeps_none_of_its_memory_alive(tmp_path: Path) -> None:
    case = the_case(
        tmp_path,
        """
        made = []
        class Tensor: pass
        def bench_x():
            tensor = Tensor()
            import weakref
            made.append(weakref.ref(tensor))
            raise RuntimeError("out of memory")
        """,
    )

    with pytest.raises(SuiteError) as caught:
        set_up(case)
    gc.collect()

    (reference,) = case.function.__globals__["made"]
    assert isinstance(reference, weakref.ref)
    assert reference() is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ("3", "TypeError", "run is an int, which cannot be called"),
        ("print, reference=3", "TypeError", "reference is an int: give a function without arguments"),
        ("print, reset=[]", "TypeError", "reset is a list: give a function without arguments"),
        ("print, reference=print, rtol=1e-3", "ValueError", "give both or neither"),
        ("print, rtol=1e-3, atol=0.0", "ValueError", "there is none: give reference="),
        ("print, reference=print, rtol=-1.0, atol=0.0", "ValueError", "rtol is -1.0"),
        ("print, reference=print, rtol=0.0, atol=float('nan')", "ValueError", "atol is nan"),
    ],
)
def test_a_wrong_call_is_reported_where_it_stands(
    tmp_path: Path, arguments: str, kind: str, message: str
) -> None:
    source = f"from collector.suite import Call\ndef bench_x():\n    return Call({arguments})\n"

    error = setup_error(tmp_path, source)

    assert message in error.message
    assert (error.stage, error.kind, error.source) == ("setup", kind, "bench_example.py:3")


def test_what_the_call_raises_is_located_in_the_suite_even_below_a_library(tmp_path: Path) -> None:
    a_suite_file(tmp_path, "def divide(x):\n    return 1 / x\n", "calls_library.py")
    case = the_case(
        tmp_path,
        """
        import calls_library
        def bench_x():
            def call():
                return calls_library.divide(0)
            return call
        """,
    )
    call = set_up(case)

    with pytest.raises(ZeroDivisionError) as caught:
        call()
    error = locate("call", caught.value, case)

    assert (error.stage, error.kind, error.source) == ("call", "ZeroDivisionError", "bench_example.py:5")
    assert (error.case, error.message) == ("x", "division by zero")
    assert "calls_library.py" in error.log


# Checking the output

CHECKED = """
    import torch
    from collector.suite import Call
    one = torch.ones(4)
    nan = torch.tensor([1.0, float("nan")])
    def bench_x():
        return Call({arguments})
    """


def check(root: Path, arguments: str) -> None:
    case = the_case(root, CHECKED.format(arguments=arguments))
    check_output(case, set_up(case))


def check_error(root: Path, arguments: str) -> SuiteError:
    with pytest.raises(SuiteError) as caught:
        check(root, arguments)
    return caught.value


@pytest.mark.parametrize(
    "arguments",
    [
        "lambda: 1 / 0",  # without a reference nothing is called
        "lambda: one, lambda: one + 1e-7",
        "lambda: one.bfloat16(), lambda: one.bfloat16() * 1.01",
        "lambda: (one, {'a': [one]}), lambda: (one, {'a': [one]})",
        "lambda: torch.topk(one, 2), lambda: torch.topk(one, 2)",
        "lambda: one, lambda: one + 0.5, rtol=0.0, atol=0.6",
        "lambda: 3.0, lambda: 3.0",
        "lambda: one.requires_grad_(), lambda: one",
    ],
)
def test_an_output_that_agrees_passes(tmp_path: Path, arguments: str) -> None:
    check(tmp_path, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lambda: one, lambda: one + 0.25", "Greatest absolute difference: 0.25"),
        ("lambda: one, lambda: one + 0.25", "Greatest relative difference: 0.2"),
        ("lambda: one, lambda: one + 0.5, rtol=0.0, atol=0.4", "Mismatched elements: 4 / 4"),
        ("lambda: nan, lambda: nan", "Mismatched elements: 1 / 2"),
        ("lambda: one, lambda: one[:3]", "The values for attribute 'shape' do not match"),
        ("lambda: one, lambda: one.double()", "The values for attribute 'dtype' do not match"),
        ("lambda: (one, one), lambda: (one,)", "The length of the sequences mismatch"),
        ("lambda: {'a': one}, lambda: {'b': one}", "The keys of the mappings do not match"),
        ("lambda: one, lambda: None", "None mismatch"),
        ("lambda: object(), lambda: object()", "the output cannot be compared with the reference"),
        ("lambda: 'text', lambda: one", "the output cannot be compared with the reference"),
        ("lambda: None, lambda: None", "the call returned None, so nothing was compared: return its output"),
        ("lambda: (), lambda: ()", "the call returned a tuple, so nothing was compared"),
        ("lambda: {}, lambda: {}", "the call returned a dict, so nothing was compared"),
        ("lambda: one[:0], lambda: one[:0]", "the call returned a Tensor, so nothing was compared"),
    ],
)
def test_an_output_that_differs_is_an_error_that_says_how(
    tmp_path: Path, arguments: str, message: str
) -> None:
    error = check_error(tmp_path, arguments)

    assert message in error.message
    assert (error.stage, error.kind, error.case) == ("check", "wrong-output", "x")
    assert error.source == "bench_example.py:6"


def test_a_call_and_its_reference_start_from_the_same_state_and_share_no_memory(tmp_path: Path) -> None:
    in_place = """
    lambda: one.add_(1),
    reference=lambda: one + 1,
    reset=lambda: one.fill_(1)
    """.strip().replace("\n", " ")

    check(tmp_path, in_place)


def test_a_call_that_raises_during_the_check_is_an_error_of_the_call(tmp_path: Path) -> None:
    error = check_error(tmp_path, "lambda: one @ torch.ones(5), lambda: one")

    assert (error.stage, error.kind, error.source) == ("call", "RuntimeError", "bench_example.py:7")


def test_a_reference_that_raises_is_an_error_of_the_check(tmp_path: Path) -> None:
    error = check_error(tmp_path, "lambda: one, lambda: 1 / 0")

    assert (error.stage, error.kind) == ("check", "ZeroDivisionError")
    assert error.message == "reference: division by zero"
