"""CUPTI's record objects, copied in bulk and taken apart later.

cupti-python gives one object a record, and reading a field of it costs 0.1 to 5 us,
depending on its version: a window of 60 samples took 15 ms to read that way. So only the
bytes of a record are copied while CUPTI hands it over, and NumPy reads whole columns of them
afterwards, by the layouts that cupti-python itself publishes (``activity_..._dtype``).
"""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import CuptiError
from collector.records import ApiRecord, CopyRecord, KernelRecord, OverheadRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_PLACE = ("start", "end", "correlation_id", "device_id", "stream_id", "graph_node_id")
_SHAPE = tuple(f"{of}_{axis}" for of in ("grid", "block", "cluster") for axis in "xyz")


class _Layout(NamedTuple):
    """Where the fields of one class of record lie.

    Attributes:
        name_at: offset of the pointer to a kernel's name, for kernels alone.
    """

    dtype: np.dtype[Any]
    name_at: int | None


class RecordShelf:
    """Copies of records, class by class, until they are read.

    Args:
        cupti: the module ``cupti.cupti``.
        id_kind: the kind of external id that is ours; others are passed over.
    """

    def __init__(self, cupti: Any, id_kind: int) -> None:
        self._cupti = cupti
        self._id_kind = int(id_kind)
        self._layouts: dict[type[Any], _Layout | None] = {}
        self._kept: defaultdict[type[Any], list[bytes]] = defaultdict(list)
        self._kernel_names: dict[int, str] = {}
        self._unreadable: set[str] = set()
        kind = cupti.ActivityKind
        self._kernel_kind = int(kind.CONCURRENT_KERNEL)
        self._overhead_names = _names(cupti.ActivityOverheadKind)
        self._readers: dict[int, Callable[[Any, Trace], None]] = {
            self._kernel_kind: self._read_kernels,
            int(kind.MEMCPY): partial(self._read_copies, "memcpy"),
            int(kind.MEMCPY2): partial(self._read_copies, "memcpy"),
            int(kind.MEMSET): partial(self._read_copies, "memset"),
            int(kind.RUNTIME): partial(self._read_apis, "runtime", _names(cupti.runtime_api_trace_cbid)),
            int(kind.DRIVER): partial(self._read_apis, "driver", _names(cupti.driver_api_trace_cbid)),
            int(kind.EXTERNAL_CORRELATION): self._read_external_ids,
            int(kind.OVERHEAD): self._read_overheads,
            int(kind.JIT): self._read_jits,
        }

    def keep(self, records: Iterable[Any]) -> None:
        """Copy records of the kinds that are read; their buffer may be reused afterwards."""
        for record in records:
            shape = type(record)
            layout = self._layouts[shape] if shape in self._layouts else self._learn(record)
            if layout is None:
                continue
            data = ctypes.string_at(record.ptr, layout.dtype.itemsize)
            self._kept[shape].append(data)
            if layout.name_at is not None:
                pointer = int.from_bytes(data[layout.name_at : layout.name_at + _POINTER_BYTES], "little")
                if pointer not in self._kernel_names:
                    self._kernel_names[pointer] = str(record.name)

    def take(self) -> Trace:
        """Everything kept since the last call, as plain records; those of a kind in the order they came.

        Raises:
            CuptiError: cupti-python did not say how a record is laid out.
        """
        kept, self._kept = self._kept, defaultdict(list)
        trace = Trace()
        for shape, copies in kept.items():
            layout = self._layouts[shape]
            if layout is None:
                raise AssertionError("only records with a layout are kept")
            rows = np.frombuffer(b"".join(copies), layout.dtype)
            for kind, read in self._readers.items():
                if (ours := rows[rows["kind"] == kind]).size:
                    read(ours, trace)
        self._kernel_names = {}  # a module that is unloaded gives its addresses back
        if self._unreadable:
            # Said here, since nobody would hear an error that is raised in CUPTI's callback.
            raise CuptiError(
                f"cupti-python says nothing about the layout of its {', '.join(sorted(self._unreadable))}: "
                "install cupti-python 13 beside the code under test"
            )
        return trace

    def _learn(self, record: Any) -> _Layout | None:
        shape = type(record)
        word = _WORD_STARTS.sub("_", shape.__name__).lower()
        dtype, layout = getattr(self._cupti, f"{word}_dtype", None), None
        if dtype is not None:
            fields = np.dtype(dtype).fields or {}
            names_a_kernel = int(record.kind) == self._kernel_kind
            layout = _Layout(np.dtype(dtype), fields["name"][1] if names_a_kernel else None)
        elif int(record.kind) in self._readers:
            self._unreadable.add(shape.__name__)
        self._layouts[shape] = layout
        return layout

    def _read_kernels(self, rows: Any, trace: Trace) -> None:
        shared = rows["static_shared_memory"].astype(np.int64) + rows["dynamic_shared_memory"]
        names = [self._kernel_names[pointer] for pointer in rows["name"].astype(np.uint64).tolist()]
        columns = _columns(rows, (*_PLACE, *_SHAPE, "registers_per_thread"))
        for name, shared_bytes, (*place, gx, gy, gz, bx, by, bz, cx, cy, cz, registers) in zip(
            names, shared.tolist(), columns, strict=True
        ):
            shape = (gx, gy, gz), (bx, by, bz), (cx, cy, cz)
            trace.kernels.append(KernelRecord._make((*place, name, *shape, registers, shared_bytes)))

    def _read_copies(self, name: str, rows: Any, trace: Trace) -> None:
        for *place, size in _columns(rows, (*_PLACE, "bytes")):
            trace.copies.append(CopyRecord._make((*place, name, size)))

    def _read_apis(self, domain: str, names: dict[int, str], rows: Any, trace: Trace) -> None:
        for cbid, *when in _columns(rows, ("cbid", "start", "end", "correlation_id", "thread_id")):
            trace.apis.append(ApiRecord._make((*when, names.get(cbid, f"{domain} call {cbid}"))))

    def _read_external_ids(self, rows: Any, trace: Trace) -> None:
        ours = rows[rows["external_kind"] == self._id_kind]
        trace.external_ids.update(_columns(ours, ("correlation_id", "external_id")))

    def _read_overheads(self, rows: Any, trace: Trace) -> None:
        for kind, start, end in _columns(rows, ("overhead_kind", "start", "end")):
            name = self._overhead_names.get(kind, f"overhead {kind}")
            trace.overheads.append(OverheadRecord(start, end, name))

    def _read_jits(self, rows: Any, trace: Trace) -> None:
        trace.overheads += [
            OverheadRecord(start, end, "JIT") for start, end in _columns(rows, ("start", "end"))
        ]


def _columns(rows: Any, fields: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Some fields of every row, as Python's own numbers."""
    return zip(*(rows[field].tolist() for field in fields), strict=True)


def _names(members: Any) -> dict[int, str]:
    return {int(member): member.name for member in members}
