"""Who may use a GPU, in two files: a lock for the one who measures, a note about a clock left locked.

Imports the standard library alone: a run and a person's notebook both come here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from collector.errors import ClocksError, MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def lock_path(gpu_uuid: str | None) -> Path:
    """Where the lock file of a GPU (or, without one, of the CPU) lies; whoever measures holds it."""
    return Path(tempfile.gettempdir()) / f"kernelwatch-{gpu_uuid or 'cpu'}.lock"


def open_shared(path: Path) -> IO[bytes]:
    """Open a lock file that every user of the machine may lock.

    Raises:
        MachineError: somebody has made it unreadable.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    before = os.umask(0)
    try:
        # Linux may refuse O_CREAT in /tmp on another user's file, and only then (protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return os.fdopen(os.open(path, flags), "r+b")
        return os.fdopen(os.open(path, flags | os.O_CREAT, 0o666), "r+b")
    except OSError as error:
        raise MachineError(f"{path} keeps two collectors apart, but cannot be opened: {error}") from error
    finally:
        os.umask(before)


@contextlib.contextmanager
def hold(path: Path, note: Callable[[str], None], *, busy: str) -> Iterator[None]:
    """Hold a lock file; where somebody else does, say so and wait until it is free.

    Args:
        path: of the file.
        note: told while it has to wait.
        busy: what it then waits for, in words.

    Raises:
        MachineError: the file cannot be opened.
    """
    with open_shared(path) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"{busy} ({path})")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class ClockNote:
    """What must be undone when the process that locked a clock is gone.

    Attributes:
        pid: of that process.
        mhz: the clock it locked.
        power_limit_mw: the limit to restore, in milliwatts; None where it was not changed.
    """

    uuid: str
    pid: int
    mhz: int
    power_limit_mw: int | None


def note_path(uuid: str) -> Path:
    """Where the note about a GPU lies, beside the lock file that keeps others off it."""
    return Path(tempfile.gettempdir()) / f"kernelwatch-{uuid}.clocks.json"


def write_note(note: ClockNote) -> None:
    """Put the note on disk, whole or not at all; a link that lies in its place is not followed."""
    path = note_path(note.uuid)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(asdict(note), stream)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).chmod(0o644)  # any user's next run must be able to read it
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def read_note(uuid: str) -> ClockNote | None:
    """The note about a GPU, or None.

    Raises:
        ClocksError: there is one, but it cannot be believed: it is damaged, or another user,
            who may not have been allowed to lock anything, has written it.
    """
    path = note_path(uuid)
    remedy = (
        f"have an administrator run `nvidia-smi -i {uuid} -rgc` and check the power limit, then remove {path}"
    )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            owner = os.fstat(stream.fileno()).st_uid
            text = stream.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ClocksError(
            f"{path} says that a clock may be locked, but cannot be read ({error}): {remedy}"
        ) from error
    if owner not in (0, os.geteuid()):
        raise ClocksError(
            f"user {owner} locked the clock of {uuid} and was killed before it was given back: let that user "
            f"run collect once, or {remedy}"
        )
    try:
        return _parsed(text, uuid)
    except ValueError as error:
        raise ClocksError(
            f"{path} says that a clock may be locked, but is damaged ({error}): {remedy}"
        ) from error


def _parsed(text: str, uuid: str) -> ClockNote:
    raw = json.loads(text)
    if not isinstance(raw, dict) or raw.get("uuid") != uuid:
        raise ValueError("it is not about this GPU")
    power = raw.get("power_limit_mw")
    numbers = [raw.get("pid"), raw.get("mhz"), *([] if power is None else [power])]
    if not all(isinstance(number, int) and number > 0 for number in numbers):
        raise ValueError("it holds no usable numbers")
    return ClockNote(uuid, raw["pid"], raw["mhz"], power)
