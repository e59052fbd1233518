"""Fixtures shared by all rooms."""

from __future__ import annotations

import sys
from pathlib import Path

# Builders and fakes live beside the tests and are imported as plain modules.
sys.path.insert(0, str(Path(__file__).parent))
