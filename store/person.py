"""Who is at the keyboard, as far as git and the system know."""

from __future__ import annotations

import getpass
import os
import subprocess
from typing import TYPE_CHECKING

from store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 10


def acting_person(checkout: Path) -> str:
    """Git's user for a checkout, such as ``Ada Example <ada@example.org>``, else the login name.

    Raises:
        StoreError: neither is known.
    """
    name, email = _git_setting(checkout, "user.name"), _git_setting(checkout, "user.email")
    if name and email:
        return f"{name} <{email}>"
    if name or email:
        return name or email
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise StoreError(
            "nobody knows who you are: neither git (user.name) nor the system has a name; give one with --as"
        ) from error


def _git_setting(checkout: Path, name: str) -> str:
    """The setting as git has it for the checkout; empty where it has none, or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), "config", "--get", name],
            check=False,
            capture_output=True,
            timeout=_TIMEOUT_S,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()
