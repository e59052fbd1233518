"""What can go wrong while measuring.

    CollectorError
    └── SuiteError    (collector.suite) a suite or one of its benchmarks cannot be measured

Every message says what happened, where, and what to do next. This module imports the
standard library alone: it is loaded inside worker processes.
"""

from __future__ import annotations


class CollectorError(Exception):
    """Something in the collector could not be done; the message says what to do next."""
