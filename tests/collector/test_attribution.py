"""Records become samples by correlation id, and whatever cannot be trusted becomes no number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import a_copy, a_kernel_record, a_trace, an_api, an_overhead

from collector.attribution import PREPARE_ID, attribute, union_ns
from collector.errors import (
    AttributionError,
    CorruptRecordError,
    DisturbedIterationError,
    ForeignDeviceError,
    OffThreadLaunchError,
    RecordsLostError,
)


def test_a_call_of_one_kernel_is_busy_for_the_time_of_that_kernel() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 3000)], 1: [a_kernel_record(9000, 12_000)]})

    samples = attribute(trace, iterations=2, device_id=0).samples

    assert [s.busy_ms for s in samples] == [0.002, 0.003]
    assert [s.latency_ms for s in samples] == [0.002, 0.003]
    assert [s.n_kernels for s in samples] == [1, 1]


def test_gaps_are_not_busy_and_overlap_counts_once() -> None:
    kernels = [a_kernel_record(1000, 3000), a_kernel_record(2000, 4000), a_kernel_record(10_000, 11_000)]

    (sample,) = attribute(a_trace({0: kernels}), iterations=1, device_id=0).samples

    assert sample.busy_ms == pytest.approx(0.004)
    assert sample.sum_ms == pytest.approx(0.005)
    assert sample.latency_ms == pytest.approx(0.010)


def test_timestamps_decide_nothing_about_whose_a_kernel_is() -> None:
    late = a_kernel_record(50_000, 51_000)
    early = a_kernel_record(1000, 5000)

    samples = attribute(a_trace({0: [late], 1: [early]}), iterations=2, device_id=0).samples

    assert [s.busy_ms for s in samples] == [0.001, 0.004]


def test_preparation_is_never_counted() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 3000)], PREPARE_ID: [a_kernel_record(100, 900, name="flush")]})

    attributed = attribute(trace, iterations=1, device_id=0)

    assert attributed.samples[0].busy_ms == 0.002
    assert [shape.name for shape, _ in attributed.launches] == ["kernel"]


def test_the_number_of_kernels_may_vary_between_iterations() -> None:
    trace = a_trace(
        {
            0: [a_kernel_record(1000, 2000)],
            1: [a_kernel_record(3000, 4000), a_kernel_record(5000, 6000, name="second")],
        }
    )

    assert [s.n_kernels for s in attribute(trace, iterations=2, device_id=0).samples] == [1, 2]


def test_a_graph_launch_owns_every_node_it_replays() -> None:
    node = a_kernel_record(1000, 2000, correlation_id=7, graph_node_id=1)
    other = a_kernel_record(2000, 4000, correlation_id=7, graph_node_id=2)

    (sample,) = attribute(a_trace({0: [node, other]}), iterations=1, device_id=0).samples

    assert (sample.n_kernels, sample.busy_ms) == (2, 0.003)


def test_a_record_delivered_twice_counts_once() -> None:
    twice = a_kernel_record(1000, 2000, correlation_id=3)
    trace = a_trace({0: [twice]})
    trace.kernels.append(twice)

    assert attribute(trace, iterations=1, device_id=0).samples[0].n_kernels == 1


def test_launches_are_listed_with_their_count_per_call() -> None:
    trace = a_trace(
        {
            i: [
                a_kernel_record(1000, 2000, name="a"),
                a_kernel_record(2000, 3000, name="b"),
                a_kernel_record(3000, 4000, name="b"),
            ]
            for i in range(3)
        }
    )

    launches = attribute(trace, iterations=3, device_id=0).launches

    assert [(shape.name, count) for shape, count in launches] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("dropped", [1, 7, 100_000])
def test_any_number_of_dropped_records_costs_the_window(dropped: int) -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.dropped = dropped

    with pytest.raises(RecordsLostError, match=f"dropped {dropped} records"):
        attribute(trace, iterations=1, device_id=0)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (0, 2000), (1000, 0), (2000, 1000), (1000, 1000), (1 << 63, (1 << 63) + 5)]
)
def test_times_that_cannot_be_never_become_a_number(start: int, end: int) -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000), a_kernel_record(start, end)]})

    with pytest.raises(CorruptRecordError, match="timestamp was not collected"):
        attribute(trace, iterations=1, device_id=0)


def test_a_corrupt_copy_is_refused_as_a_corrupt_kernel_is() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]}, copies={0: [a_copy(5000, 4000)]})

    with pytest.raises(CorruptRecordError, match="memcpy"):
        attribute(trace, iterations=1, device_id=0)


def test_a_kernel_without_an_id_was_launched_by_another_thread() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.kernels.append(a_kernel_record(2500, 2600, name="backward", correlation_id=999))

    with pytest.raises(OffThreadLaunchError, match=r"backward.*launches_from_any_thread=True"):
        attribute(trace, iterations=1, device_id=0)


def test_an_id_that_no_iteration_has_is_no_iteration() -> None:
    with pytest.raises(OffThreadLaunchError):
        attribute(
            a_trace({0: [a_kernel_record(1, 2)], 5: [a_kernel_record(3, 4)]}), iterations=1, device_id=0
        )


def test_without_a_drop_counter_an_orphan_may_be_a_loss() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.kernels.append(a_kernel_record(2500, 2600, correlation_id=999))
    trace.dropped = None

    with pytest.raises(AttributionError, match="cannot say whether records were lost"):
        attribute(trace, iterations=1, device_id=0)


def test_an_iteration_without_kernels_is_an_error_and_never_zero() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)], 2: [a_kernel_record(5000, 6000)]})

    with pytest.raises(AttributionError, match="iteration 1 of 3 left no trace"):
        attribute(trace, iterations=3, device_id=0)


def test_no_record_at_all_is_an_error() -> None:
    with pytest.raises(AttributionError, match="left no trace"):
        attribute(a_trace({}), iterations=10, device_id=0)


def test_work_on_another_device_is_refused() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000, device_id=1)]})

    with pytest.raises(ForeignDeviceError, match="ran on device 1, but device 0 is measured"):
        attribute(trace, iterations=1, device_id=0)


def test_copies_are_told_beside_the_kernels() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 3000)]}, copies={0: [a_copy(2000, 6000)]})

    (sample,) = attribute(trace, iterations=1, device_id=0).samples

    assert (sample.busy_ms, sample.copy_ms, sample.busy_and_copies_ms) == (0.002, 0.004, 0.005)


def test_a_call_of_copies_alone_needs_count_copies() -> None:
    trace = a_trace({}, copies={0: [a_copy(1000, 4000)]})

    with pytest.raises(AttributionError, match="count_copies=True"):
        attribute(trace, iterations=1, device_id=0)
    (sample,) = attribute(trace, iterations=1, device_id=0, count_copies=True).samples
    assert (sample.busy_and_copies_ms, sample.latency_ms) == (0.003, 0.003)


def test_kernels_of_any_thread_are_found_by_the_call_that_launched_them() -> None:
    trace = a_trace({})
    trace.kernels = [
        a_kernel_record(1500, 2500, correlation_id=1),
        a_kernel_record(90_000, 91_000, correlation_id=2),
        a_kernel_record(100, 200, correlation_id=3, name="flush"),
    ]
    trace.apis = [an_api(1100, 1), an_api(5100, 2, thread_id=77), an_api(50, 3)]
    trace.bounds = [(1000, 4000), (5000, 99_000)]

    samples = attribute(trace, iterations=2, device_id=0, any_thread=True).samples

    assert [s.busy_ms for s in samples] == [0.001, 0.001]


def test_kernels_of_any_thread_without_a_launch_record_are_refused() -> None:
    trace = a_trace({})
    trace.kernels = [
        a_kernel_record(1500, 2500, correlation_id=1),
        a_kernel_record(1600, 1700, correlation_id=2),
    ]
    trace.apis = [an_api(1100, 1)]
    trace.bounds = [(1000, 4000)]

    with pytest.raises(OffThreadLaunchError):
        attribute(trace, iterations=1, device_id=0, any_thread=True)


@pytest.mark.parametrize(
    "name",
    [
        "cudaMalloc_v3020",
        "cuMemAlloc_v2",
        "cuMemCreate",
        "cudaFree_v3020",
        "cuModuleLoadData",
        "cuLibraryLoadData",
    ],
)
def test_allocating_or_loading_inside_an_iteration_costs_the_window(name: str) -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.apis = [an_api(900, 500, name=name)]
    trace.external_ids[500] = 0

    with pytest.raises(DisturbedIterationError, match=f"{name} was called inside iteration 0"):
        attribute(trace, iterations=1, device_id=0)


@pytest.mark.parametrize(
    "name",
    ["cudaMallocAsync_v11020", "cuMemAllocFromPoolAsync", "cudaFreeAsync_v11020", "cudaLaunchKernel_v7000"],
)
def test_stream_ordered_allocation_is_part_of_the_call(name: str) -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.apis = [an_api(900, 500, name=name)]
    trace.external_ids[500] = 0

    assert attribute(trace, iterations=1, device_id=0).samples[0].n_kernels == 1


def test_allocating_in_preparation_is_allowed() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.apis = [an_api(100, 500, name="cudaMalloc_v3020")]
    trace.external_ids[500] = PREPARE_ID

    assert len(attribute(trace, iterations=1, device_id=0).samples) == 1


@pytest.mark.parametrize("name", ["JIT", "DRIVER_COMPILER", "LAZY_FUNCTION_LOADING", "COMMAND_BUFFER_FULL"])
def test_compiling_or_loading_inside_an_iteration_costs_the_window(name: str) -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)], 1: [a_kernel_record(6000, 7000)]})
    trace.bounds = [(900, 2100), (5900, 7100)]
    trace.overheads = [an_overhead(5000, 6500, name)]

    with pytest.raises(DisturbedIterationError, match=f"{name} took .* inside iteration 1"):
        attribute(trace, iterations=2, device_id=0)


def test_overhead_between_iterations_does_not_matter() -> None:
    trace = a_trace({0: [a_kernel_record(1000, 2000)]})
    trace.bounds = [(900, 2100)]
    trace.overheads = [an_overhead(100, 800, "JIT"), an_overhead(950, 990, "CUPTI_BUFFER_FLUSH")]

    assert len(attribute(trace, iterations=1, device_id=0).samples) == 1


spans = st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 500)), min_size=1, max_size=30)


@given(spans)
def test_the_union_is_the_count_of_covered_nanoseconds(parts: list[tuple[int, int]]) -> None:
    intervals = [(start, start + length) for start, length in parts]

    covered = {tick for start, end in intervals for tick in range(start, end)}

    assert union_ns(intervals) == len(covered)


@pytest.mark.parametrize("pushed", [0, 7, PREPARE_ID, 1 << 40])
def test_an_id_that_the_call_pushes_itself_is_refused_whatever_it_looks_like(pushed: int) -> None:
    honest = [a_kernel_record(100, 200), a_kernel_record(1100, 1200)]
    stray = a_kernel_record(1200, 1300)
    trace = a_trace({0: [honest[0]], 1: [honest[1]]})
    trace.kernels.append(stray)
    trace.external_ids[stray.correlation_id] = pushed
    trace.apis = [an_api(1010, honest[1].correlation_id), an_api(1020, stray.correlation_id)]
    trace.bounds = [(0, 1000), (1001, 2000)]

    with pytest.raises(AttributionError, match=rf"iteration 1, under the external id {pushed}: .*CUSTOM1"):
        attribute(trace, iterations=2, device_id=0)


def test_an_iteration_s_id_on_a_launch_between_iterations_is_refused() -> None:
    kernels = [a_kernel_record(100, 200), a_kernel_record(1200, 1300)]
    trace = a_trace({0: kernels})
    trace.apis = [an_api(10, kernels[0].correlation_id), an_api(1100, kernels[1].correlation_id)]
    trace.bounds = [(0, 1000)]

    with pytest.raises(AttributionError, match="outside of every iteration"):
        attribute(trace, iterations=1, device_id=0)
