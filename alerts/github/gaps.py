"""That nothing, or not everything, was measured: said in the comment and as a check, never by silence.

What GitHub says about the workflow run is believed. What the artifact says is quoted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.github.checks import Check, earlier_check, post_check
from alerts.github.sections import Section, Tally
from alerts.markdown import code, prose
from store import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from alerts.github.client import Client
    from alerts.github.place import Event

CHECK_NAME = "kernelwatch"
_WORDS_LINES = 8  # the last lines of a program say why it ended
_WELL = (None, "success", "neutral")
_ENDED = {
    "failure": "failed",
    "cancelled": "was cancelled",
    "timed_out": "ran out of time",
    "action_required": "waits for somebody to approve it",
    "skipped": "was skipped",
    "startup_failure": "could not start",
    "stale": "was given up by GitHub",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What is missing of what a workflow run was to measure.

    Attributes:
        key: of its section; the same for every workflow run of this artifact.
        head_sha: the commit in question.
        workflow: name of the workflow that was to measure, as the pull request may have written it.
        ended: how it ended, in words; None where it ended well.
        url: of its page.
        why: what is wrong with its artifact, or None where runs of it are told as well.
        words: the last lines of what ``collect`` said, oldest first.
        orders: whether the pull request takes orders.
    """

    key: str
    head_sha: str
    workflow: str
    ended: str | None
    url: str
    why: str | None
    words: tuple[str, ...] = ()
    orders: bool = False

    @property
    def title(self) -> str:
        """The answer in one line; nothing in it comes from a pull request."""
        if self.why is None:
            return f"The workflow that measures {self.ended}: something may be missing"
        if self.ended is None:
            return "Nothing was measured that can be judged"
        return f"Nothing was measured: the workflow {self.ended}"

    @property
    def text(self) -> str:
        """The same with its reason, in plain lines."""
        reasons = [] if self.why is None else [shown.one_line(self.why, limit=1000)]
        said = [f"  {shown.visible(word)}" for word in self.words]
        return "\n".join([self.title, *reasons, *(["It said:", *said] if said else []), self.url]) + "\n"

    @property
    def section(self) -> Section:
        """As a part of the comment."""
        tally = Tally(not_measured=1)
        said = ["The last that it said:", "", *(f"- {code(word)}" for word in self.words), ""]
        again = f" or comment {code('/kernelwatch rerun')}" if self.orders else ""
        advice = (
            f"look at [what the workflow did]({self.url}), mend what stopped it, and run it again "
            f"there{again}. Until then nothing is known about the speed of what is missing."
        )
        lines = [
            f"### {tally.sign} {prose(self.title)}",
            "",
            f"The workflow {code(self.workflow, limit=80)} was to measure {shown.short(self.head_sha)} and "
            f"{self.ended or 'left nothing that can be used'}. {prose(self._reason)}".rstrip(),
            "",
            *(said if self.words else []),
            f"**What to do:** {advice}",
        ]
        return Section(
            key=self.key, run_id="", commit_sha=self.head_sha, tally=tally, text="\n".join(lines) + "\n"
        )

    @property
    def check(self) -> Check:
        """As a check: open, since what was not measured has not passed."""
        return Check(
            name=CHECK_NAME,
            head_sha=self.head_sha,
            key=self.key,
            conclusion="neutral",
            title=self.title,
            summary=self.section.text,
            notes=(),
        )

    @property
    def _reason(self) -> str:
        if self.why is None:
            return ""
        said = shown.one_line(self.why, limit=1000)
        return said[:1].upper() + said[1:] + ("" if said.endswith((".", "?")) else ".")


def gap_key(slug: str, artifact: str) -> str:
    """What gaps share that replace one another: repository and artifact."""
    return hashlib.sha256(f"{slug}\ngap\n{artifact}".encode()).hexdigest()[:16]


def gap_of(
    client: Client, event: Event, artifact: str, *, head_sha: str, why: str | None, words: str, orders: bool
) -> Gap | None:
    """What is missing, or None where the workflow ended well and left something to judge.

    Args:
        client: knows the repository.
        event: ``workflow_run``.
        artifact: its name.
        head_sha: the commit in question.
        why: what is wrong with the artifact; None where it holds runs to judge.
        words: what ``collect`` said.
        orders: whether the pull request takes orders.
    """
    conclusion = event.at("workflow_run", "conclusion")
    if why is None and conclusion in _WELL:
        return None
    place = client.place
    return Gap(
        key=gap_key(place.slug, artifact),
        head_sha=head_sha,
        workflow=str(event.at("workflow_run", "name") or "(without a name)"),
        ended=None if conclusion in _WELL else _ENDED.get(str(conclusion), "did not succeed"),
        url=f"{place.server_url}/{place.repository}/actions/runs/{int(event.at('workflow_run', 'id'))}",
        why=why,
        words=tuple(line.strip() for line in words.splitlines() if line.strip())[-_WORDS_LINES:],
        orders=orders,
    )


def close_gap(client: Client, head_sha: str, key: str, say: Callable[[str], None]) -> None:
    """Let the check of a gap pass that is filled: what was missing on this commit was measured since.

    Raises:
        GitHubError: GitHub could not be asked or told.
    """
    found = earlier_check(client, head_sha, CHECK_NAME, key)
    if found is None or found.get("conclusion") == "success":
        return
    filled = Check(
        name=CHECK_NAME,
        head_sha=head_sha,
        key=key,
        conclusion="success",
        title="Measured since",
        summary="What was missing was measured; the other checks of kernelwatch say with what result.",
        notes=(),
    )
    say(f"the check says measured since: {post_check(client, filled)}")
