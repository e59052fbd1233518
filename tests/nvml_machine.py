"""A machine whose GPUs are described in a file and controlled by a fake NVML."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fake_nvml

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FIRST_UUID = "GPU-11111111-aaaa-4bbb-8ccc-000000000001"
SECOND_UUID = "GPU-22222222-aaaa-4bbb-8ccc-000000000002"

# As much of torch as a worker host and the load on the clocks touch; quick to import, needs no GPU.
_FAKE_TORCH = '''
"""Stands in for torch: what is queued keeps the fake GPU's clock up until it is drained."""
__version__ = "0"
float16 = None
queued = 0

def randn(*shape, device, dtype):
    return None

def mm(left, right, out=None):
    global queued
    queued += 1

def get_num_threads():
    return 1

class version:
    cuda = None

class cuda:
    @staticmethod
    def is_available():
        return True

    @staticmethod
    def is_initialized():
        return False

    @staticmethod
    def synchronize():
        global queued
        queued = 0
'''


@dataclass(frozen=True)
class NvmlMachine:
    """The state file, and the ways to look at it and to change it."""

    path: Path

    def gpu(self, uuid: str = FIRST_UUID) -> dict[str, Any]:
        """What a GPU looks like now."""
        return next(gpu for gpu in self._state()["gpus"] if gpu["uuid"] == uuid)

    def change(self, uuid: str = FIRST_UUID, **changes: Any) -> None:
        """Change a GPU: ``errors`` by function, ``ignores`` for functions without effect, and values."""
        state = self._state()
        next(gpu for gpu in state["gpus"] if gpu["uuid"] == uuid).update(changes)
        self._write(state)

    def change_machine(self, **changes: Any) -> None:
        """Change what is not of one GPU: ``errors`` of calls without a GPU, ``working``, ``gpus``."""
        self._write(self._state() | changes)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return state

    def _write(self, state: dict[str, Any]) -> None:
        self.path.write_text(json.dumps(state), encoding="utf-8")

    def use_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have this process take the fake for pynvml."""
        monkeypatch.setenv(fake_nvml.STATE_VARIABLE, str(self.path))
        monkeypatch.setitem(sys.modules, "pynvml", fake_nvml)

    def environment(self) -> dict[str, str]:
        """The environment in which new processes find the fakes of pynvml and torch."""
        folder = self.path.parent / "fakes"
        folder.mkdir(exist_ok=True)
        shutil.copy(fake_nvml.__file__, folder / "pynvml.py")
        (folder / "torch.py").write_text(_FAKE_TORCH, encoding="utf-8")
        return dict(os.environ) | {"PYTHONPATH": str(folder), fake_nvml.STATE_VARIABLE: str(self.path)}


def a_gpu(uuid: str, **changes: Any) -> dict[str, Any]:
    """An idle card that runs at 1980 MHz when nothing limits it."""
    fields: dict[str, Any] = {
        "uuid": uuid,
        "name": "NVIDIA H200",
        "free_mhz": 1980,
        "locked_mhz": None,
        "power_limit_mw": 700_000,
        "persistence": 1,
        "mig": 0,
        "reasons": 0,
        "processes": [4000],
        "fields": {"74": 10, "76": 0, "269": 0, "270": 0, "271": 0, "186": 118_500},
        "errors": {},
        "ignores": [],
        "written": [],
    }
    return fields | changes


def a_machine(folder: Path, *gpus: dict[str, Any]) -> NvmlMachine:
    """A machine with these GPUs, by default two."""
    machine = NvmlMachine(folder / "nvml.json")
    described = list(gpus) or [a_gpu(FIRST_UUID), a_gpu(SECOND_UUID)]
    machine.path.write_text(json.dumps({"gpus": described, "errors": {}, "working": False}), encoding="utf-8")
    return machine
