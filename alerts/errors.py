"""What can go wrong between a stored run and a reader.

AlertsError
├── NothingToJudge
├── RevisionUnknown
├── TriageRefused
│   └── DecisionInvalid
├── GitHubError
│   ├── GitHubRefused
│   └── GitHubUnsure
└── DeliveryError
    ├── MailError
    └── WebhookError

Statistical doubt is a verdict, never an error.
"""

from __future__ import annotations


class AlertsError(Exception):
    """Judging or telling could not be done; the message says what, where and what to do next."""


class NothingToJudge(AlertsError):  # noqa: N818 - named for what is the case, like the store's errors
    """There is no run to judge, or no two runs to compare."""


class RevisionUnknown(AlertsError):  # noqa: N818 - named for what is the case
    """A word on the command line names neither a stored run nor a commit."""


class TriageRefused(AlertsError):  # noqa: N818 - named for what is the case
    """A decision names nothing that was measured, or does not say what it has to."""


class DecisionInvalid(TriageRefused):
    """What was typed can be no decision, whatever was measured: a question of usage."""


class DeliveryError(AlertsError):
    """A message could not be handed over: unsafe, unreachable, or refused.

    Attributes:
        lasting: trying again cannot help until somebody changes something.
        uncertain: the other side had the whole message and gave no answer; it may have taken it.
        away: nothing at all can be handed over there now.
        retry_after_s: how long the other side asked to wait, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        lasting: bool = False,
        uncertain: bool = False,
        away: bool = False,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.uncertain = uncertain
        self.away = away
        self.retry_after_s = retry_after_s


class MailError(DeliveryError):
    """A mail could not be handed over to the server."""


class WebhookError(DeliveryError):
    """A webhook did not take a message."""


class GitHubError(AlertsError):
    """GitHub could not be asked or told something; no message holds a token."""


class GitHubRefused(GitHubError):  # noqa: N818 - named for what is the case
    """GitHub answered with an error.

    Attributes:
        status: of its answer, such as 403.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ArtifactUnusable(GitHubError):  # noqa: N818 - named for what is the case
    """A workflow run left no artifact of ours, or one that holds nothing to judge.

    Attributes:
        words: the end of what ``collect`` said, where the artifact holds that.
    """

    def __init__(self, message: str, *, words: str = "") -> None:
        super().__init__(message)
        self.words = words


class GitHubUnsure(GitHubError):  # noqa: N818 - named for what is the case
    """The answer to a request that must not be made twice was lost."""
