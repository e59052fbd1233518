"""What can go wrong between a stored run and a reader.

AlertsError
├── NothingToJudge
├── RevisionUnknown
└── MailError

Statistical doubt is a verdict, never an error.
"""

from __future__ import annotations


class AlertsError(Exception):
    """Judging or telling could not be done; the message says what, where and what to do next."""


class NothingToJudge(AlertsError):  # noqa: N818 - named for what is the case, like the store's errors
    """There is no run to judge, or no two runs to compare."""


class RevisionUnknown(AlertsError):  # noqa: N818 - named for what is the case
    """A word on the command line names neither a stored run nor a commit."""


class MailError(AlertsError):
    """A mail could not be handed over: unsafe, unreachable, or refused by the server."""
