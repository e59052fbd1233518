"""Errors of the dashboard.

DashboardError
├── UnknownSeries
├── UnknownCommit
└── SignInInvalid
"""

from __future__ import annotations


class DashboardError(Exception):
    """A page cannot show what its URL asks for; the message says what to do next."""


class UnknownSeries(DashboardError):  # noqa: N818 - named like the store's errors: what is wrong
    """The URL names a series that the store does not hold."""


class UnknownCommit(DashboardError):  # noqa: N818 - named like the store's errors: what is wrong
    """The URL names a commit or a run that the store does not hold."""


class SignInInvalid(DashboardError):  # noqa: N818 - named like the store's errors: what is wrong
    """What describes sign-in cannot be read or lacks something; nothing is served then."""
