"""How CUPTI is switched on, read and switched off, with the real records and errors of its package."""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

import pytest
from fake_cupti import FUNCTIONS_NOT_TO_USE, FakeCupti, NotSupportedError, install, record, shapes

from collector.cupti_session import BUFFER_BYTES, CuptiSession
from collector.errors import CuptiError
from collector.records import ApiRecord, CopyRecord, KernelRecord, OverheadRecord

if TYPE_CHECKING:
    from collections.abc import Callable

KERNELS, MEMCPYS, MEMSETS = shapes("ActivityKernel"), shapes("ActivityMemcpy"), shapes("ActivityMemset")
OLDEST_AND_NEWEST = (0, -1)
PRIVILEGES, MULTIPLE_SUBSCRIBERS = 35, 39


@pytest.fixture(name="cupti")
def _cupti(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    return install(monkeypatch)


@pytest.fixture(name="session")
def _session(cupti: FakeCupti) -> CuptiSession:
    """A session that records."""
    del cupti
    session = CuptiSession()
    session.start()
    session.trust_drop_counter(proven=True)
    return session


def the_kernel(shape: type[Any], **fields: Any) -> Any:
    """A kernel record of this class with every field that is read set to a value of its own."""
    values: dict[str, Any] = {
        "start": 1_000, "end": 3_500, "correlation_id": 17, "device_id": 0, "stream_id": 7,
        "graph_node_id": 5, "name": "softmax_warp_forward", "grid_x": 11, "grid_y": 12, "grid_z": 13,
        "block_x": 21, "block_y": 22, "block_z": 23, "cluster_x": 2, "cluster_y": 1, "cluster_z": 1,
        "registers_per_thread": 40, "static_shared_memory": 1024, "dynamic_shared_memory": 2048,
    }  # fmt: skip
    return record(shape, "CONCURRENT_KERNEL", **(values | fields))


def test_callbacks_are_registered_before_any_kind_is_enabled(cupti: FakeCupti) -> None:
    CuptiSession().start()

    assert cupti.names().index("register") < cupti.names().index("enable")
    assert cupti.names().count("register") == 1


def test_everything_that_attribution_needs_is_enabled(cupti: FakeCupti) -> None:
    CuptiSession().start()

    assert {kind.name for kind in cupti.arguments_of("enable")} == {
        "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "EXTERNAL_CORRELATION", "RUNTIME", "DRIVER",
        "OVERHEAD", "JIT",
    }  # fmt: skip


def test_stopping_disables_in_reverse_and_ends_with_a_forced_flush(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    session.stop()

    assert cupti.arguments_of("disable") == cupti.arguments_of("enable")[::-1]
    assert cupti.calls[-1] == ("flush", 1)


def test_stopping_twice_is_safe(session: CuptiSession, cupti: FakeCupti) -> None:
    session.stop()
    session.stop()

    assert cupti.arguments_of("flush") == [1]


def test_stopping_goes_on_where_a_kind_refuses_to_be_disabled(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    cupti.refuses = lambda function, _: FakeCupti.cuptiError(1) if function == "disable" else None

    session.stop()

    assert cupti.arguments_of("disable") == cupti.arguments_of("enable")[::-1]
    assert cupti.calls[-1] == ("flush", 1)


def test_a_kind_that_cannot_be_enabled_takes_those_before_it_down_again(cupti: FakeCupti) -> None:
    refused = FakeCupti.ActivityKind.OVERHEAD
    cupti.refuses = lambda function, kind: (
        FakeCupti.cuptiError(PRIVILEGES) if (function, kind) == ("enable", refused) else None
    )

    with pytest.raises(CuptiError, match="INSUFFICIENT_PRIVILEGES"):
        CuptiSession().start()

    enabled = [kind for kind in cupti.arguments_of("enable") if kind != refused]
    assert [kind for kind in cupti.arguments_of("disable") if kind in enabled] == enabled[::-1]


def test_only_calls_that_launch_copy_allocate_or_load_are_recorded(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    del session
    chosen = {
        enum(call).name
        for function, enum in (
            ("runtime_api", FakeCupti.runtime_api_trace_cbid),
            ("driver_api", FakeCupti.driver_api_trace_cbid),
        )
        for call, enable in cupti.arguments_of(function)
        if enable
    }

    assert {
        "cudaLaunchKernel_v7000", "cudaLaunchKernelExC_v11060", "cudaGraphLaunch_v10000", "cuLaunchKernel",
        "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020", "cudaMalloc_v3020", "cuMemAlloc_v2",
        "cuModuleLoadData", "cuLibraryLoadData",
    } <= chosen  # fmt: skip
    assert not chosen & {
        "cudaEventRecord_v3020", "cudaDeviceSynchronize_v3020", "cudaStreamWaitEvent_v3020",
        "cuCtxGetCurrent", "cudaGetLastError_v3020",
    }  # fmt: skip


def test_calls_that_the_driver_does_not_know_are_passed_over(cupti: FakeCupti) -> None:
    cupti.refuses = lambda function, _: FakeCupti.cuptiError(1) if function.endswith("_api") else None

    CuptiSession().start()  # INVALID and SIZE are refused by every driver


@pytest.mark.parametrize("index", OLDEST_AND_NEWEST)
def test_a_kernel_record_is_copied_field_by_field(
    index: int, session: CuptiSession, cupti: FakeCupti
) -> None:
    cupti.records = [the_kernel(KERNELS[index])]

    (kernel,) = session.take().kernels

    assert kernel == KernelRecord(
        start=1_000, end=3_500, correlation_id=17, device_id=0, stream_id=7, graph_node_id=5,
        name="softmax_warp_forward", grid=(11, 12, 13), block=(21, 22, 23), cluster=(2, 1, 1),
        registers=40, shared_bytes=3072,
    )  # fmt: skip
    assert {type(value) for value in kernel} == {int, str, tuple}  # nothing points into CUPTI's buffer


def test_a_record_that_changes_after_it_was_read_changes_nothing(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    reused = the_kernel(KERNELS[-1])
    cupti.records = [reused]
    trace = session.take()

    reused.start, reused.name = 0, "another"

    assert (trace.kernels[0].start, trace.kernels[0].name) == (1_000, "softmax_warp_forward")


@pytest.mark.parametrize("index", OLDEST_AND_NEWEST)
@pytest.mark.parametrize(
    ("classes", "kind", "name"),
    [(MEMCPYS, "MEMCPY", "memcpy"), (shapes("ActivityMemcpyPtoP"), "MEMCPY2", "memcpy"),
     (MEMSETS, "MEMSET", "memset")],
)  # fmt: skip
def test_copies_and_memsets_are_copied_field_by_field(
    *, classes: list[type[Any]], kind: str, name: str, index: int, session: CuptiSession, cupti: FakeCupti
) -> None:
    cupti.records = [
        record(
            classes[index], kind, start=5, end=9, correlation_id=3, device_id=1, stream_id=2,
            graph_node_id=4, bytes=4096,
        )
    ]  # fmt: skip

    assert session.take().copies == [CopyRecord(5, 9, 3, 1, 2, 4, name, 4096)]


def test_api_calls_are_named(session: CuptiSession, cupti: FakeCupti) -> None:
    launch = int(FakeCupti.runtime_api_trace_cbid["cudaLaunchKernel_v7000"])
    allocate = int(FakeCupti.driver_api_trace_cbid["cuMemAlloc_v2"])
    common: dict[str, Any] = {"start": 1, "end": 2, "correlation_id": 3, "thread_id": 99}
    cupti.records = [
        record("ActivityAPI", "RUNTIME", cbid=launch, **common),
        record("ActivityAPI", "DRIVER", cbid=allocate, **common),
        record("ActivityAPI", "DRIVER", cbid=99_999, **common),  # newer than this binding
    ]

    assert session.take().apis == [
        ApiRecord(1, 2, 3, 99, "cudaLaunchKernel_v7000"),
        ApiRecord(1, 2, 3, 99, "cuMemAlloc_v2"),
        ApiRecord(1, 2, 3, 99, "driver call 99999"),
    ]


def test_external_ids_of_others_are_not_taken_for_ours(session: CuptiSession, cupti: FakeCupti) -> None:
    kinds = FakeCupti.ExternalCorrelationKind
    cupti.records = [
        record("ActivityExternalCorrelation", "EXTERNAL_CORRELATION", correlation_id=number,
               external_kind=int(kind), external_id=8)
        for number, kind in ((1, kinds.CUSTOM0), (2, kinds.UNKNOWN), (3, kinds.OPENACC))
    ]  # fmt: skip

    assert session.take().external_ids == {1: 8}


def test_overheads_and_compilation_are_kept_by_name(session: CuptiSession, cupti: FakeCupti) -> None:
    loading = FakeCupti.ActivityOverheadKind.LAZY_FUNCTION_LOADING
    cupti.records = [
        record(shapes("ActivityOverhead")[-1], "OVERHEAD", start=1, end=2, overhead_kind=int(loading)),
        record(shapes("ActivityJit")[-1], "JIT", start=3, end=4),
    ]

    assert session.take().overheads == [
        OverheadRecord(1, 2, "LAZY_FUNCTION_LOADING"),
        OverheadRecord(3, 4, "JIT"),
    ]


def test_records_of_other_kinds_are_left_alone(session: CuptiSession, cupti: FakeCupti) -> None:
    cupti.records = [record("ActivityAPI", "NAME"), the_kernel(KERNELS[-1])]

    assert len(session.take().kernels) == 1


def test_taking_flushes_with_force_and_begins_a_new_trace(session: CuptiSession, cupti: FakeCupti) -> None:
    cupti.records = [the_kernel(KERNELS[-1])]

    first, second = session.take(), session.take()

    assert (len(first.kernels), len(second.kernels)) == (1, 0)
    assert cupti.arguments_of("flush") == [1, 1]


def test_discarding_forgets_what_was_recorded_and_lost(session: CuptiSession, cupti: FakeCupti) -> None:
    cupti.records = [the_kernel(KERNELS[-1])]
    cupti.losses.append(4)

    session.discard()
    trace = session.take()

    assert (trace.kernels, trace.dropped) == ([], 0)


def test_the_number_of_lost_records_comes_with_the_trace(session: CuptiSession, cupti: FakeCupti) -> None:
    cupti.losses.append(3)

    assert session.take().dropped == 3
    assert session.take().dropped == 0


def test_a_counter_that_was_never_seen_to_count_says_unknown_and_not_zero(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    session.trust_drop_counter(proven=False)

    assert session.take().dropped is None
    cupti.losses.append(2)
    assert session.take().dropped == 2  # a loss that it does count is one


def test_the_drop_counter_is_proven_by_losing_records(session: CuptiSession, cupti: FakeCupti) -> None:
    def launch() -> None:
        cupti.records = [the_kernel(KERNELS[-1])] * 4

    assert session.prove_drop_counter(launch)
    assert session.buffer_bytes == BUFFER_BYTES
    assert session.take().kernels == []


def test_a_drop_counter_that_stands_still_is_not_proven(session: CuptiSession) -> None:
    assert not session.prove_drop_counter(lambda: None)


def test_the_buffer_is_whole_again_when_the_proof_fails(session: CuptiSession) -> None:
    def launch() -> None:
        raise RuntimeError("CUDA error")

    with pytest.raises(RuntimeError):
        session.prove_drop_counter(launch)

    assert session.buffer_bytes == BUFFER_BYTES


def test_pushed_numbers_are_custom_ids_and_popped_in_pairs(session: CuptiSession, cupti: FakeCupti) -> None:
    session.push(12)
    session.pop()

    ours = FakeCupti.ExternalCorrelationKind.CUSTOM0
    assert cupti.calls[-2:] == [("push", (ours, 12)), ("pop", ours)]


def test_a_pause_stops_recording_and_resuming_starts_it_with_the_same_choice(
    session: CuptiSession, cupti: FakeCupti
) -> None:
    at_start = list(cupti.calls)
    cupti.calls.clear()

    session.pause()
    session.pause()
    assert cupti.arguments_of("disable") == [kind for name, kind in at_start if name == "enable"][::-1]

    cupti.calls.clear()
    session.resume()
    assert cupti.calls == [call for call in at_start if call[0] != "register"]


REFUSALS: dict[str, Callable[[], Exception]] = {
    "another profiler": lambda: FakeCupti.cuptiError(MULTIPLE_SUBSCRIBERS),
    "no driver": lambda: NotSupportedError("CUDA driver is not found (libcuda.so.1: no such file)"),
}


@pytest.mark.parametrize("function", ["register", "enable"])
@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_of_cupti_becomes_an_error_with_a_remedy(
    what: str, function: str, cupti: FakeCupti
) -> None:
    error = REFUSALS[what]()
    cupti.refuses = lambda called, _: error if called == function else None

    with pytest.raises(CuptiError) as told:
        CuptiSession().start()

    assert str(error) in str(told.value)
    assert "(nsys, ncu, torch.profiler) must go, and the driver must be of CUDA 13" in str(told.value)
    assert told.value.__cause__ is error


def test_cupti_that_is_not_installed_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupti", raising=False)
    real_import = builtins.__import__

    def without_cupti(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "cupti":
            raise ModuleNotFoundError("No module named 'cupti'")
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_cupti)

    with pytest.raises(CuptiError, match="install cupti-python beside the code under test"):
        CuptiSession()


def test_functions_that_crash_or_falsify_are_never_called(cupti: FakeCupti) -> None:
    # They do not exist in the fake: whoever calls them gets an AttributeError.
    assert not [name for name in FUNCTIONS_NOT_TO_USE if hasattr(cupti, name)]
    session = CuptiSession()
    session.start()
    session.push(1)
    session.pop()
    session.take()
    session.discard()
    session.pause()
    session.resume()
    session.stop()


def test_a_record_of_unknown_layout_is_an_error_and_not_a_loss(
    session: CuptiSession, cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupti, "activity_memset4_dtype", None, raising=False)
    cupti.records = [record("ActivityMemset4", "MEMSET", start=1, end=2)]

    with pytest.raises(CuptiError, match="says nothing about the layout of its ActivityMemset4"):
        session.take()
