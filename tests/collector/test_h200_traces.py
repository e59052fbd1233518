"""Real CUPTI records of an H200, replayed: the same numbers again, and none where a record is wrong."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector.attribution import PREPARE_ID, Attributed, attribute
from collector.errors import (
    AttributionError,
    CorruptRecordError,
    OffThreadLaunchError,
    RecordsLostError,
    TimingError,
)
from collector.traces import read_trace, write_trace

if TYPE_CHECKING:
    from collector.records import Trace

FOLDER = Path(__file__).parents[1] / "data" / "h200" / "traces"
FILES = sorted(FOLDER.glob("*.trace.json.gz"))


@dataclass(frozen=True)
class Recorded:
    """A window's records and what the worker made of them on the card."""

    trace: Trace
    message: dict[str, Any]

    def attribute(self, trace: Trace | None = None) -> Attributed:
        """Attribute the recorded records, or a damaged copy of them."""
        return attribute(
            self.trace if trace is None else trace,
            iterations=len(self.trace.bounds),
            device_id=0,
            count_copies=self.counts_copies,
        )

    @property
    def counts_copies(self) -> bool:
        return bool(self.message["quantity"] == "device_busy_and_copies")

    def work_of(self, trace: Trace) -> list[Any]:
        """The records that hold the measured work."""
        return trace.copies if self.counts_copies else trace.kernels

    @property
    def owned(self) -> list[int]:
        """Places in ``work_of`` that an iteration owns."""
        ids = self.trace.external_ids
        work = self.work_of(self.trace)
        return [i for i, record in enumerate(work) if ids[record.correlation_id] != PREPARE_ID]


@pytest.fixture(name="recorded", params=FILES, ids=lambda path: path.name.split(".")[0])
def _recorded(request: pytest.FixtureRequest) -> Recorded:
    return Recorded(*read_trace(request.param))


def test_there_are_traces_of_at_least_six_benchmarks() -> None:
    assert len({path.name.split("-")[0] for path in FILES}) >= 6


def test_the_records_give_the_same_samples_as_on_the_card(recorded: Recorded) -> None:
    attributed = recorded.attribute()

    headline = "busy_and_copies_ms" if recorded.counts_copies else "busy_ms"
    assert [getattr(s, headline) for s in attributed.samples] == recorded.message["samples_ms"]
    assert [s.latency_ms for s in attributed.samples] == recorded.message["latency_ms"]
    assert [s.n_kernels for s in attributed.samples] == recorded.message["n_kernels"]
    assert [[shape.name, count] for shape, count in attributed.launches] == [
        [launch[0], launch[-1]] for launch in recorded.message["launches"]
    ]


def test_the_flush_of_the_cache_is_recorded_and_belongs_to_no_iteration(recorded: Recorded) -> None:
    prepared = [key for key, owner in recorded.trace.external_ids.items() if owner == PREPARE_ID]

    assert len(prepared) >= len(recorded.trace.bounds)


def test_busy_time_never_exceeds_the_span_nor_the_sum(recorded: Recorded) -> None:
    if recorded.counts_copies:
        return
    for sample in recorded.attribute().samples:
        assert sample.busy_ms <= sample.latency_ms + 1e-12
        assert sample.busy_ms <= sample.sum_ms + 1e-12


def test_any_single_missing_external_id_refuses_the_window(recorded: Recorded) -> None:
    records = recorded.work_of(recorded.trace)
    for place in recorded.owned[:: max(1, len(recorded.owned) // 5)]:
        damaged = deepcopy(recorded.trace)
        del damaged.external_ids[records[place].correlation_id]

        with pytest.raises(OffThreadLaunchError):
            recorded.attribute(damaged)


@pytest.mark.parametrize("field", ["start", "end"])
def test_any_single_zero_timestamp_refuses_the_window(recorded: Recorded, field: str) -> None:
    for place in recorded.owned[:: max(1, len(recorded.owned) // 5)]:
        damaged = deepcopy(recorded.trace)
        records = recorded.work_of(damaged)
        records[place] = records[place]._replace(**{field: 0})

        with pytest.raises(CorruptRecordError):
            recorded.attribute(damaged)


def test_an_iteration_whose_records_are_gone_refuses_the_window(recorded: Recorded) -> None:
    damaged = deepcopy(recorded.trace)
    gone = {key for key, owner in damaged.external_ids.items() if owner == 3}
    damaged.kernels = [k for k in damaged.kernels if k.correlation_id not in gone]
    damaged.copies = [c for c in damaged.copies if c.correlation_id not in gone]

    with pytest.raises(AttributionError, match="iteration 3"):
        recorded.attribute(damaged)


def test_one_dropped_record_refuses_the_window_although_every_iteration_has_kernels(
    recorded: Recorded,
) -> None:
    damaged = deepcopy(recorded.trace)
    del recorded.work_of(damaged)[recorded.owned[-1]]
    damaged.dropped = 1

    with pytest.raises(RecordsLostError):
        recorded.attribute(damaged)


def test_a_damaged_window_is_always_a_timing_error(recorded: Recorded) -> None:
    """Whatever is wrong, the caller catches one type."""
    for damage in (RecordsLostError, CorruptRecordError, OffThreadLaunchError, AttributionError):
        assert issubclass(damage, TimingError)
    assert recorded.trace.dropped == 0


def test_a_trace_survives_being_written_and_read(recorded: Recorded, tmp_path: Path) -> None:
    path = write_trace(tmp_path, "a/b[c=1]", recorded.trace, recorded.message)

    trace, message = read_trace(path)
    assert trace == recorded.trace
    assert message == recorded.message
    assert path.parent == tmp_path


def test_graph_replays_and_backward_passes_are_owned_by_their_calls() -> None:
    names = {path.name.split("-")[0]: path for path in FILES}

    graph = Recorded(*read_trace(names["graph_replay"])).attribute()
    backward = Recorded(*read_trace(names["mlp_backward"])).attribute()

    assert {sample.n_kernels for sample in graph.samples} == {32}
    assert {sample.n_kernels for sample in backward.samples} == {5}
