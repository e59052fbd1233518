"""What the configuration says to the pages: the file that ``alerts`` would find from here."""

from __future__ import annotations

import os
from pathlib import Path

from alerts.configuration import policies_here
from store.configuration import CONFIG_VARIABLE


def release_tags() -> tuple[str, ...]:
    """Globs over the tags that are releases.

    The file is read each time, so that a change counts without starting the server again.

    Raises:
        ConfigurationInvalid: the file cannot be read, or holds a mistake.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    return policies_here(Path(named) if named else None).general.release_tags
