"""Which GitHub, which repository, and what has happened: read from a workflow's environment.

What the runner writes (variables and the event's file) is GitHub's own word. What comes out
of an artifact is not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alerts.errors import GitHubError
from store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB_COM = "https://api.github.com"
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_EVENT_BYTES_MAX = 25 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A repository on github.com or on a GitHub Enterprise server.

    Attributes:
        api_url: such as ``https://api.github.com`` or ``https://HOST/api/v3``.
        server_url: where people look, such as ``https://github.com``.
        repository: ``owner/name``.
        run_id: the workflow run that asks, or None outside of one.
    """

    repository: str
    api_url: str = GITHUB_COM
    server_url: str = "https://github.com"
    run_id: str | None = None

    @property
    def path(self) -> str:
        """The beginning of every path of this repository."""
        return f"/repos/{self.repository}"

    @property
    def slug(self) -> str:
        """The repository as a run names it: ``host/owner/name``."""
        return f"{self.server_url.partition('://')[2]}/{self.repository}"

    @property
    def name(self) -> str:
        """The name without the owner."""
        return self.repository.partition("/")[2]

    @property
    def run_url(self) -> str | None:
        """The page of the workflow run that asks."""
        return self.run_id and f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def place_of(environment: Mapping[str, str], *, repository: str | None = None) -> Place:
    """The place that a workflow's variables name.

    Args:
        environment: ``GITHUB_REPOSITORY``, ``GITHUB_API_URL``, ``GITHUB_SERVER_URL``, ``GITHUB_RUN_ID``.
        repository: instead of ``GITHUB_REPOSITORY``.

    Raises:
        GitHubError: there is no repository, or it is no ``owner/name``.
    """
    named = repository or environment.get("GITHUB_REPOSITORY", "")
    if not named:
        raise GitHubError("which repository? Say --repository OWNER/NAME, or set GITHUB_REPOSITORY")
    if not _REPOSITORY.fullmatch(named) or named.endswith(("/.", "/..")):
        raise GitHubError(f"{shown.visible(named)!r} is no repository: it reads OWNER/NAME")
    run_id = environment.get("GITHUB_RUN_ID", "")
    return Place(
        repository=named,
        api_url=environment.get("GITHUB_API_URL") or GITHUB_COM,
        server_url=(environment.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/"),
        run_id=run_id if run_id.isdecimal() else None,
    )


@dataclass(frozen=True, slots=True)
class Event:
    """What started the workflow, as GitHub describes it.

    Attributes:
        name: such as ``pull_request`` or ``workflow_run``.
        payload: the document that came with it.
    """

    name: str
    payload: Mapping[str, Any]

    def at(self, *path: str) -> Any:
        """A value deep inside, or None where the way there ends."""
        found: Any = self.payload
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return found


def event_of(environment: Mapping[str, str]) -> Event:
    """The event of the workflow that asks; without one, an event of no name.

    Raises:
        GitHubError: the file that ``GITHUB_EVENT_PATH`` names cannot be read, or holds no object.
    """
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return Event("", {})
    try:
        with Path(path).open("rb") as file:
            content = file.read(_EVENT_BYTES_MAX + 1)
        payload = json.loads(content)
    except (OSError, ValueError) as error:
        raise GitHubError(f"GITHUB_EVENT_PATH={shown.visible(path)} cannot be read: {error}") from error
    if not isinstance(payload, dict):
        raise GitHubError(f"GITHUB_EVENT_PATH={shown.visible(path)} holds no event")
    return Event(environment.get("GITHUB_EVENT_NAME", ""), payload)
