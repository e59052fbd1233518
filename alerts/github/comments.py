"""The one comment on a pull request: found, updated in place, and never doubled for long.

GitHub offers no way to change a comment only if nobody else did, and a lost answer leaves open
whether a comment was created. So everything is looked at again afterwards: comments that two
jobs made at once become one, and a section that another job wrote over is written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alerts.errors import GitHubError, GitHubRefused, GitHubUnsure
from alerts.github.sections import Section, assemble, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from alerts.github.client import Client

_ROUNDS = 6
_GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class Posted:
    """Where the comment is.

    Attributes:
        outcome: ``created``, ``updated``, ``unchanged``, or ``left`` where it says something newer.
    """

    url: str
    outcome: str


def post_section(
    client: Client,
    number: int,
    own: Callable[[int], Section],
    *,
    replaces: Sequence[str] = (),
    head_sha: str | None = None,
) -> Posted:
    """Put a section into the comment on a pull request.

    Args:
        client: who speaks; only comments of the same author are touched.
        number: of the pull request.
        own: renders the section into so many bytes.
        replaces: keys of earlier formats whose sections this one replaces.
        head_sha: the newest commit of the pull request, or None where it is not known: a section
            about it is not replaced by one about an older commit.

    Raises:
        GitHubError: it could not be posted; there is at most one comment all the same.
    """
    section = own(0)
    outcome = "unchanged"
    created: dict[int, dict[str, Any]] = {}
    for _ in range(_ROUNDS):
        found = _own_comments(client, number, created)
        sections = [one for comment in found for one in parse(comment["body"])]
        if _is_older(section, sections, head_sha):
            return Posted(found[0]["html_url"], "left")
        body = assemble(_others(sections, section, replaces), own)
        if len(found) == 1 and found[0]["body"].replace("\r\n", "\n").strip() == body.strip():
            return Posted(found[0]["html_url"], outcome)
        outcome = _write(client, number, found, body, created) or outcome
        client.pause()
    raise GitHubError(
        f"the comment on pull request {number} was changed by others {_ROUNDS} times while it was written: "
        "run the command again"
    )


def _write(
    client: Client, number: int, found: list[dict[str, Any]], body: str, created: dict[int, dict[str, Any]]
) -> str | None:
    """Create or change the oldest comment and delete the others; None where that has to be seen first."""
    path = client.place.path
    if not found:
        try:
            comment = client.create(f"{path}/issues/{number}/comments", {"body": body})
        except GitHubUnsure:
            return None  # the next look tells whether it is there
        created[comment["id"]] = comment
        return "created"
    try:
        changed = client.change(f"{path}/issues/comments/{found[0]['id']}", {"body": body})
    except GitHubRefused as refused:
        if refused.status not in _GONE:
            raise
        created.pop(found[0]["id"], None)
        return None  # another job, which had found two, has deleted this one
    if found[0]["id"] in created:
        created[found[0]["id"]] = changed
    for spare in found[1:]:
        client.delete(f"{path}/issues/comments/{spare['id']}")
        created.pop(spare["id"], None)
    return "updated"


def _own_comments(client: Client, number: int, created: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Our comments, oldest first, with those just created, which a list may not show yet."""
    author = client.login
    listed = {
        comment["id"]: comment
        for comment in client.items(f"{client.place.path}/issues/{number}/comments")
        if (comment.get("user") or {}).get("login") == author and parse(comment.get("body") or "")
    }
    return [comment for _, comment in sorted((created | listed).items())]


def _others(sections: Sequence[Section], own: Section, replaces: Sequence[str]) -> list[Section]:
    """The sections that stay, of each key the last."""
    gone = {own.key, *replaces}
    return list({one.key: one for one in sections if one.key not in gone}.values())


def _is_older(own: Section, sections: Sequence[Section], head_sha: str | None) -> bool:
    return (
        head_sha is not None
        and own.commit_sha != head_sha
        and any(one.key == own.key and one.commit_sha == head_sha for one in sections)
    )
