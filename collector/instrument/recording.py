"""The one CUPTI session of this process, opened by the first measurement that needs it.

CUPTI takes its callbacks once a process. Between measurements nothing is recorded; before the
process ends everything is switched off, since one that exits with recording on may crash.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from collector.cupti_session import BUFFER_BYTES, CuptiSession
from collector.probe import prove_recording

if TYPE_CHECKING:
    from collector.device import Device

_sessions: dict[int, CuptiSession] = {}  # by process id: a forked child must not use its parent's


def recording_session(device: Device) -> CuptiSession:
    """The session, with the buffer size a fresh one has.

    Args:
        device: where known kernels are launched, to prove that records arrive.

    Raises:
        CuptiError: CUPTI cannot be used in this process.
    """
    session = _sessions.get(os.getpid())
    if session is None:
        session = _proven(device)
        _sessions[os.getpid()] = session
        atexit.register(_stop, os.getpid())
    session.buffer_bytes = BUFFER_BYTES
    return session


def _proven(device: Device) -> CuptiSession:
    session = CuptiSession()
    session.start()
    try:
        session.trust_drop_counter(proven=prove_recording(session, device))
    except BaseException:
        session.stop()
        raise
    return session


def _stop(pid: int) -> None:
    if os.getpid() == pid:
        _sessions.pop(pid).stop()
