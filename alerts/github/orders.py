"""Orders in comments on pull requests: ``/kernelwatch rerun`` and ``/kernelwatch accept NAME...``.

Anybody may comment, so an order counts only from people who may write to the repository, by
GitHub's word at the moment it is carried out. An order is words, never a command line.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from alerts.errors import GitHubError, GitHubRefused

if TYPE_CHECKING:
    from alerts.github.client import Client
    from alerts.github.place import Event

_ORDER = re.compile(r"/kernelwatch[ \t]+(\S+)[ \t]*(.*)")
_WRITERS = ("admin", "write")  # GitHub counts the role "maintain" as write
_NAMES_MAX = 20
_NAME_MAX = 300
_LOGIN = re.compile(r"[A-Za-z0-9-]{1,39}(\[bot\])?")


class Verb(StrEnum):
    """What can be ordered."""

    RERUN = "rerun"
    ACCEPT = "accept"


class Reaction(StrEnum):
    """How an order is answered, in GitHub's words for its signs."""

    DONE = "rocket"
    REFUSED = "confused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order.

    Attributes:
        names: benchmarks or cases, of an ``accept``.
        by: who ordered it, a login.
        comment_id: of the comment, which a reaction answers.
        number: of the pull request.
    """

    verb: Verb
    names: tuple[str, ...]
    by: str
    comment_id: int
    number: int


def order_of(event: Event) -> Order | None:
    """The order in the first line of a new comment on a pull request; None where there is none.

    Raises:
        GitHubError: it begins like an order and is none that is known.
    """
    body, number = event.at("comment", "body"), event.at("issue", "number")
    if event.name != "issue_comment" or event.at("action") != "created":
        return None
    if event.at("issue", "pull_request") is None or not isinstance(body, str):
        return None
    match = _ORDER.fullmatch(body.strip().partition("\n")[0].strip())
    if match is None:
        return None
    login = str(event.at("comment", "user", "login"))
    if match[1] not in set(Verb) or not _LOGIN.fullmatch(login):
        raise GitHubError(f"an order is one of: {', '.join(f'/kernelwatch {verb}' for verb in Verb)}")
    verb = Verb(match[1])
    return Order(
        verb=verb,
        names=_names(match[2]) if verb is Verb.ACCEPT else (),
        by=login,
        comment_id=int(event.at("comment", "id")),
        number=int(number),
    )


def check_writer(client: Client, login: str) -> None:
    """See that somebody may write to the repository.

    Raises:
        GitHubError: they may not, or GitHub did not say.
    """
    path = f"{client.place.path}/collaborators/{quote(login, safe='')}/permission"
    try:
        permission = client.get(path)["permission"]
    except GitHubRefused as refused:
        if refused.status != 404:  # noqa: PLR2004 - Not Found: nobody of this repository
            raise
        permission = "none"
    if permission not in _WRITERS:
        raise GitHubError(
            f"{login} may not write to {client.place.repository}: the order was not carried out"
        )


def measure_again(client: Client, head_sha: str, workflow: str) -> str:
    """Run the newest run of the measuring workflow on a commit again; returns its address.

    Raises:
        GitHubError: that workflow never ran on the commit; the token needs ``actions: write``.
    """
    run = newest_workflow_run(client, head_sha, workflow)
    client.create(f"{client.place.path}/actions/runs/{int(run['id'])}/rerun", {})
    return str(run["html_url"])


def newest_workflow_run(client: Client, head_sha: str, workflow: str) -> dict[str, Any]:
    """The newest run of a workflow file, such as ``measure.yml``, for a pull request's commit.

    Raises:
        GitHubError: there is none.
    """
    runs = client.items(
        f"{client.place.path}/actions/workflows/{quote(workflow, safe='')}/runs",
        {"head_sha": head_sha, "event": "pull_request"},
        key="workflow_runs",
    )
    newest: dict[str, Any] | None = max(runs, key=lambda run: int(run["id"]), default=None)
    if newest is None:
        raise GitHubError(f"the workflow {workflow} never ran on {head_sha[:9]}: there is nothing to order")
    return newest


def react(client: Client, order: Order, reaction: Reaction) -> None:
    """Answer an order with a sign on its comment; needs ``pull-requests: write``.

    Raises:
        GitHubError: GitHub did not take it.
    """
    path = f"{client.place.path}/issues/comments/{order.comment_id}/reactions"
    client.create(path, {"content": str(reaction)}, repeatable=True)  # the same twice counts once


def _names(words: str) -> tuple[str, ...]:
    try:
        names = tuple(shlex.split(words))
    except ValueError as error:
        raise GitHubError(f"/kernelwatch accept: {error}; quote names like a shell does") from error
    if not names or len(names) > _NAMES_MAX or any(len(name) > _NAME_MAX for name in names):
        raise GitHubError(
            "/kernelwatch accept needs the names of one to twenty benchmarks or cases, "
            "such as: /kernelwatch accept softmax 'top_k[k=50, rows=64]'"
        )
    return names
