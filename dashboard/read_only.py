"""Whether the pages take decisions, or only show them."""

from __future__ import annotations

import os

READ_ONLY_VARIABLE = "KERNELWATCH_READ_ONLY"  # set for the server by ``dashboard --read-only``


def is_read_only() -> bool:
    """Whether this server takes no decisions."""
    return os.environ.get(READ_ONLY_VARIABLE) == "1"
