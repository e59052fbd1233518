"""A copy of a store to try something in, such as runs that nobody vouches for."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from store.database import Database
from store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def copy_store(database: Database, folder: Path) -> Database:
    """Copy a store into a folder, as it is at one moment; where there is none yet, the copy is none either.

    Args:
        database: what is copied; other processes may use it, and wait while they want to write.
        folder: an empty folder, on a disk with room for it.

    Raises:
        StoreLocked: somebody has been writing for too long.
        StoreError: it could not be copied.
    """
    copy = Database(folder / "copy.duckdb")
    if not database.exists():
        return copy
    try:
        with database.reading():  # nobody writes while somebody reads
            shutil.copyfile(database.path, copy.path)
            if database.wal_path.exists():
                shutil.copyfile(database.wal_path, copy.wal_path)
    except OSError as error:
        raise StoreError(f"cannot copy {database.url} to {folder}: {error}") from error
    return copy
