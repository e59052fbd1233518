"""Which pull request a workflow is about, from GitHub's own words alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alerts.errors import GitHubError
from store import shown

if TYPE_CHECKING:
    from alerts.github.client import Client
    from alerts.github.place import Event

_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be commented on.

    Attributes:
        number: of the pull request; None where there is none, or none any more.
        head_sha: the commit in question: the newest of the pull request, or what was measured.
    """

    number: int | None
    head_sha: str


def subject_of(client: Client, event: Event, number: int | None = None) -> Subject:
    """The pull request that a person named, or that the event is about.

    A ``workflow_run`` of a fork names no pull request: then the open one is searched whose
    newest commit was measured. Where there is none any more, the number is None.

    Raises:
        GitHubError: GitHub could not be asked, or the event is about no pull request.
    """
    if event.name == "workflow_run" and number is None:
        return _of_workflow_run(client, event)
    found = number or event.at("pull_request", "number")
    if found is None and event.at("issue", "pull_request") is not None:
        found = event.at("issue", "number")
    if found is None:
        raise GitHubError(
            f"the event {shown.visible(event.name) or '(none)'} is about no pull request: "
            "say which one with --pull"
        )
    pull = client.get(f"{client.place.path}/pulls/{int(found)}")
    return Subject(number=int(found), head_sha=_sha(pull["head"]["sha"]))


def measured_run_id(event: Event) -> int:
    """The workflow run whose artifacts hold what was measured.

    Raises:
        GitHubError: the event is about none.
    """
    run_id = event.at("workflow_run", "id")
    if not isinstance(run_id, int):
        raise GitHubError(
            "--artifact needs the event workflow_run, which names the workflow run that measured"
        )
    return run_id


def _of_workflow_run(client: Client, event: Event) -> Subject:
    head_sha = _sha(event.at("workflow_run", "head_sha"))
    owner = event.at("workflow_run", "head_repository", "owner", "login")
    branch = event.at("workflow_run", "head_branch")
    query = {"state": "open"}
    if isinstance(owner, str) and isinstance(branch, str):
        query["head"] = f"{owner}:{branch}"
    pulls = client.items(f"{client.place.path}/pulls", query)
    numbers = [int(pull["number"]) for pull in pulls if pull["head"]["sha"] == head_sha]
    return Subject(number=min(numbers, default=None), head_sha=head_sha)


def _sha(value: Any) -> str:
    if not isinstance(value, str) or not _SHA.fullmatch(value):
        raise GitHubError(f"the event names no commit but {shown.visible(str(value), limit=60)!r}")
    return value
