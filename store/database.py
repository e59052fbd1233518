"""The edge to DuckDB: open, one transaction, close.

DuckDB locks a file for one process: while anybody has it open for writing nobody else can
open it, and while anybody reads it nobody can write. So no connection is ever held; whoever
meets the lock waits a little and tries again.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from store.errors import StoreError, StoreInvalid, StoreLocked, StoreMissing, StoreTooNew
from store.schema import SCHEMA_VERSION, migrate, stored_version

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_URL = "kernelwatch.duckdb"
STORE_VARIABLE = "KERNELWATCH_STORE"
# DuckDB 1.2 and everything since can read this layout; a 2.x file in its own layout shuts 1.x out.
STORAGE_VERSION = "v1.2.0"
_RETRY_FIRST_S = 0.01
_RETRY_LONGEST_S = 0.25
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:|:")
_LOCK_HOLDER = re.compile(r"Conflicting lock is held in (.+?) \(PID (\d+)\)")
# No extension is ever fetched from the network, and no Python variable is taken for a table.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


class _Gate:
    """Lets one thread of this process at a time have a file open.

    DuckDB uses POSIX record locks, which belong to the process: when one of two
    connections of a process closes a file, the lock of the other is gone as well, and
    another process may write under its eyes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def acquire(self, timeout_s: float) -> bool:
        """Enter, or say False after ``timeout_s``; entering twice is a bug and raises."""
        if self._owner == threading.get_ident():
            raise StoreError("this thread has the store open already: pass that connection on")
        if not self._lock.acquire(timeout=max(timeout_s, 0.0)):
            return False
        self._owner = threading.get_ident()
        return True

    def release(self) -> None:
        """Leave."""
        self._owner = None
        self._lock.release()


_gates: dict[Path, _Gate] = {}
_gates_guard = threading.Lock()
os.register_at_fork(after_in_child=_gates.clear)  # the threads that held them exist in the parent only


class Database:
    """A store at a place. Makes no connection until it is asked for one, and keeps none.

    Args:
        url: path of a DuckDB file on a local disk (not on NFS, whose locks cannot be relied on).
        lock_deadline_s: how long to wait for others who have the file open, in seconds.

    Raises:
        StoreInvalid: the place is not a file path.
    """

    def __init__(self, url: str | Path, *, lock_deadline_s: float = 30.0) -> None:
        self.url = str(url)
        if not self.url.strip() or _SCHEME.match(self.url):
            raise StoreInvalid(f"{self.url!r} is no place for a store: give the path of a DuckDB file")
        self.path = Path(self.url).expanduser().resolve()
        self.lock_deadline_s = lock_deadline_s

    @classmethod
    def default(cls) -> Database:
        """The store named by the environment variable KERNELWATCH_STORE, else DEFAULT_URL."""
        return cls(os.environ.get(STORE_VARIABLE) or DEFAULT_URL)

    def __repr__(self) -> str:
        return f"Database({self.url!r})"

    @property
    def wal_path(self) -> Path:
        """Where DuckDB keeps what it has committed but not yet folded into the file."""
        return self.path.with_name(self.path.name + ".wal")

    def exists(self) -> bool:
        """Whether there is a file at this place. A store is put there whole or not at all."""
        return self.path.exists()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection for one consistent look; an older schema is migrated first.

        Raises:
            StoreMissing: nothing was saved here yet.
            StoreLocked, StoreTooNew, StoreInvalid, StoreError: as their names say.
        """
        if not self.exists():
            raise StoreMissing(
                f"there is no store at {self.url}: measure something with 'collect', take a bundle in with "
                f"'store import FILE', or name another store with --store or {STORE_VARIABLE}"
            )
        with self._opened(read_only=True) as connection:
            older = self._version(connection) < SCHEMA_VERSION
            if not older:
                connection.execute("begin transaction")
                yield connection
        if older:
            self._bring_up_to_date()
            with self._opened(read_only=True) as connection:
                connection.execute("begin transaction")
                yield connection

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: committed on exit, rolled back on any error.

        Makes the store, or migrates it, where that is needed.

        Raises:
            StoreLocked, StoreTooNew, StoreInvalid, StoreError: as their names say.
        """
        if not self.exists():
            self._create()
        with self._opened(read_only=False) as connection:
            if self._version(connection) < SCHEMA_VERSION:
                migrate(connection)
            connection.execute("begin transaction")
            try:
                yield connection
                connection.execute("commit")
            except BaseException as error:
                # A failed commit has ended the transaction by itself; the first error is the one to see.
                with suppress(duckdb.Error):
                    connection.execute("rollback")
                if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException):
                    raise StoreError(
                        f"could not write to {self.url}, nothing was changed: {error}: "
                        "check the free space and the rights of its folder"
                    ) from error
                raise

    def _bring_up_to_date(self) -> None:
        try:
            with self.writing():
                pass
        except StoreError as error:
            raise type(error)(
                f"{self.url} is of an older kernelwatch, and whoever reads it first has to be able to write "
                f"it, to bring it up to date: {error}"
            ) from error

    def _version(self, connection: duckdb.DuckDBPyConnection) -> int:
        try:
            return stored_version(connection)
        except StoreError as error:
            raise type(error)(f"{self.url}: {error}") from None

    def _create(self) -> None:
        """Put a whole, empty store at this place, unless another process was quicker.

        It is built beside its place and linked there in one step, so that nobody ever
        meets a file that is half made.
        """
        if not self.path.parent.is_dir():
            raise StoreError(
                f"cannot make the store {self.url}: the folder {self.path.parent} does not exist; "
                "make it, or name another place"
            )
        if self.wal_path.exists():
            raise StoreInvalid(
                f"{self.wal_path} is left over from a store that is gone: bring {self.path.name} back, "
                "or move the .wal file away"
            )
        draft = Database(self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.new"))
        try:
            with draft._opened(read_only=False, create=True) as connection:
                migrate(connection)
            with suppress(FileExistsError):
                os.link(draft.path, self.path)
        except OSError as error:
            raise StoreError(
                f"cannot make the store {self.url}: {error}; "
                "choose a folder on a local disk that you may write"
            ) from error
        finally:
            draft.path.unlink(missing_ok=True)
            draft.wal_path.unlink(missing_ok=True)

    @contextmanager
    def _opened(self, *, read_only: bool, create: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with the file attached as ``db``, once nobody else stands in the way."""
        deadline = time.monotonic() + self.lock_deadline_s
        with _gates_guard:
            gate = _gates.setdefault(self.path, _Gate())
        if not gate.acquire(self.lock_deadline_s):
            raise StoreLocked(
                f"{self.url} is in use by another thread of this process (PID {os.getpid()}); "
                f"waited {self.lock_deadline_s:g} s"
            )
        try:
            with duckdb.connect(config=_CONFIG) as connection:
                self._attach(connection, deadline, read_only=read_only, create=create)
                yield connection
        finally:
            gate.release()

    def _attach(
        self, connection: duckdb.DuckDBPyConnection, deadline: float, *, read_only: bool, create: bool
    ) -> None:
        options = f" (storage_version '{STORAGE_VERSION}')" if create else " (read_only)" if read_only else ""
        quoted = str(self.path).replace("'", "''")
        statement = f"attach '{quoted}' as db{options}"
        longest_s = _RETRY_FIRST_S
        while True:
            try:
                connection.execute(statement)
                connection.execute("use db")
            except duckdb.Error as error:
                if "Could not set lock" not in str(error):
                    raise self._explained(error) from error
                if time.monotonic() >= deadline:
                    raise StoreLocked(self._locked_message(str(error))) from error
            else:
                return
            # Jitter, so that those who wait for the same file do not meet again at once.
            time.sleep(random.uniform(0, longest_s))  # noqa: S311 - no secret
            longest_s = min(2 * longest_s, _RETRY_LONGEST_S)

    def _locked_message(self, words: str) -> str:
        holder = _LOCK_HOLDER.search(words)
        who = f"{Path(holder[1]).name} (PID {holder[2]})" if holder else "another process"
        return (
            f"{self.path} is in use by {who}; waited {self.lock_deadline_s:g} s: "
            "let it finish, or end it, and try again"
        )

    def _explained(self, error: duckdb.Error) -> StoreError:
        """DuckDB's refusal to open the file, in our words."""
        words = str(error)
        if "version number" in words or "newer version" in words:
            return StoreTooNew(
                f"{self.url} was written by a newer DuckDB than {duckdb.__version__}: "
                f"upgrade duckdb here ({words})"
            )
        if "not a valid DuckDB database file" in words:
            return StoreInvalid(f"{self.url} is not a DuckDB file: name another store, or move it away")
        return StoreError(f"cannot open the store {self.url}: {words}")
