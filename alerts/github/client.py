"""GitHub's REST interface: patient with limits and failures, discreet about tokens.

What may safely be asked twice is repeated after a failure. A POST is not: whether it was
carried out is unknown when the answer is lost, and whoever asked has to look first.
"""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any, Self

import httpx

from alerts.errors import GitHubError, GitHubRefused, GitHubUnsure
from alerts.github.auth import App, Secret
from alerts.github.patience import Patience, Pause, backoff, failure_pause, limit_pause
from alerts.github.transport import Answer, Request, Transport
from store import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from alerts.github.auth import Token
    from alerts.github.place import Place

PAGE = 100
PAGES_MAX = 100
WORKFLOW_LOGIN = "github-actions[bot]"
_FORBIDDEN = 403
_MOMENT_S = 0.5
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_ERRORS_FROM = 400
_GONE = (404, 410)
_WORDS = 300


class Client:
    """One conversation with GitHub about one repository.

    Args:
        place: which GitHub, and which repository.
        credentials: who asks.
        patience: the bounds on trying again.
        sleep, now, jitter: the clock; tests bring their own. ``jitter`` gives 0 to 1.
    """

    def __init__(
        self,
        place: Place,
        credentials: Token | App,
        *,
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.place = place
        self._transport = Transport(place.api_url)
        self._credentials = credentials
        self._patience = patience or Patience()
        self._sleep, self._now, self._jitter = sleep, now, jitter
        self._token: Secret | None = None
        self._login: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    @property
    def login(self) -> str:
        """Whose comments are ours.

        Raises:
            GitHubError: GitHub did not say.
        """
        if self._login is None:
            self._authorized()  # an app learns its name on the way to its token
        if self._login is None:
            try:
                self._login = str(self.get("/user")["login"])
            except GitHubRefused as refused:
                if refused.status != _FORBIDDEN:
                    raise
                self._login = WORKFLOW_LOGIN  # a workflow's token belongs to nobody who could be asked
        return self._login

    def pause(self) -> None:
        """Wait for a moment, not always the same, before looking at what others may have changed."""
        self._sleep(_MOMENT_S * (1 + self._jitter()))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The JSON at a path such as ``/repos/o/r/pulls/1``.

        Raises:
            GitHubRefused: GitHub answered with an error; it holds the status.
            GitHubError: GitHub could not be reached, or answered with something else than JSON.
        """
        return _parsed(self._ask(Request(method="GET", url=self._transport.url(path, query))))

    def items(
        self, path: str, query: Mapping[str, str] | None = None, *, key: str | None = None
    ) -> Iterator[Any]:
        """The items of a list, page after page; ``key`` names the list where pages are objects.

        Raises:
            GitHubError: as ``get``; or a page leads to another server, or there is no end of pages.
        """
        url = self._transport.url(path, {"per_page": str(PAGE)} | dict(query or {}))
        for _ in range(PAGES_MAX):
            answer = self._ask(Request(method="GET", url=url))
            page = _parsed(answer)
            yield from page[key] if key else page
            if answer.following is None:
                return
            url = self._transport.joined(url, answer.following)
        raise GitHubError(f"{shown.visible(path)} has more than {PAGES_MAX} pages of {PAGE}")

    def create(self, path: str, body: Mapping[str, Any], *, repeatable: bool = False) -> Any:
        """POST, once unless the caller says that doing it twice does no harm.

        Raises:
            GitHubUnsure: the answer was lost: look whether it was done before asking again.
            GitHubError: as ``get``.
        """
        url = self._transport.url(path)
        return _parsed(self._ask(Request(method="POST", url=url, body=body, repeatable=repeatable)))

    def change(self, path: str, body: Mapping[str, Any], *, method: str = "PATCH") -> Any:
        """PATCH or PUT: the same change twice is one change.

        Raises:
            GitHubError: as ``get``.
        """
        return _parsed(self._ask(Request(method=method, url=self._transport.url(path), body=body)))

    def delete(self, path: str) -> None:
        """DELETE; what is gone already is no error.

        Raises:
            GitHubError: as ``get``.
        """
        try:
            self._ask(Request(method="DELETE", url=self._transport.url(path)))
        except GitHubRefused as refused:
            if refused.status not in _GONE:
                raise

    def download(self, path: str, *, max_bytes: int) -> bytes:
        """A file that GitHub redirects to; the token stays with GitHub.

        Raises:
            GitHubError: as ``get``, or the file is longer than ``max_bytes``.
        """
        url = self._transport.url(path)
        return self._ask(Request(method="GET", url=url, max_bytes=max_bytes, elsewhere=True)).content

    def _ask(self, request: Request) -> Answer:
        token = self._authorized()
        waited = 0.0
        for attempt in range(1, self._patience.attempts + 1):
            try:
                answer = self._transport.send(request, token)
            except httpx.RequestError as error:
                pause = self._after_failure(error, attempt)
            else:
                asked = self._after_answer(answer, attempt)
                if asked is None:
                    return self._accepted(answer, request)
                pause = asked
            if pause.unsure and not request.repeatable:
                raise GitHubUnsure(f"{request.what}: {pause.why}; whether it was done is not known")
            if attempt == self._patience.attempts:
                times = shown.count(attempt, "time")
                raise GitHubError(f"{request.what}: {pause.why}, {times} in a row")
            waited = self._wait(pause, waited, request)
        raise AssertionError("the last attempt returns or raises")

    def _after_failure(self, error: httpx.RequestError, attempt: int) -> Pause:
        said = shown.one_line(self._without_secrets(str(error)), limit=120) or type(error).__name__
        seconds = backoff(attempt, self._patience)
        return Pause(seconds, f"the connection failed ({said})", unsure=not isinstance(error, _NOT_SENT))

    def _after_answer(self, answer: Answer, attempt: int) -> Pause | None:
        """How long to wait before the next attempt; None where the answer counts, good or bad."""
        status, headers, now = answer.status, answer.headers, self._now()
        return limit_pause(
            status, headers, answer.beginning, attempt=attempt, now_s=now, patience=self._patience
        ) or failure_pause(status, headers, attempt=attempt, now_s=now, patience=self._patience)

    def _wait(self, pause: Pause, waited: float, request: Request) -> float:
        """Sleep, or give up; returns the seconds that were waited for this question."""
        # Never earlier than GitHub said; otherwise spread, so that many jobs do not come back at once.
        spread = self._jitter()
        seconds = pause.seconds + spread if pause.exact else pause.seconds * (1 + spread) / 2
        if waited + seconds > self._patience.wait_max_s:
            raise GitHubError(
                f"{request.what}: {pause.why}, for {seconds:.0f} s more, and no longer than "
                f"{self._patience.wait_max_s:.0f} s are waited in all: run the command again later"
            )
        self._sleep(seconds)
        return waited + seconds

    def _accepted(self, answer: Answer, request: Request) -> Answer:
        if answer.status < _ERRORS_FROM:
            return answer
        said = self._without_secrets(_words_of(answer))
        raise GitHubRefused(f"{request.what}: {answer.status} {said}{_remedy(answer)}", status=answer.status)

    def _without_secrets(self, text: str) -> str:
        for secret in (self._token, getattr(self._credentials, "secret", None)):
            if secret is not None:
                text = text.replace(secret.word, "***")
        return shown.one_line(text, limit=_WORDS)

    def _authorized(self) -> Secret:
        if self._token is None:
            self._token = (
                self._installation_token(self._credentials)
                if isinstance(self._credentials, App)
                else self._credentials.secret
            )
        return self._token

    def _installation_token(self, app: App) -> Secret:
        """A token for this repository alone, with what the app was granted there."""
        self._token = app.jwt(self._now())  # the two questions below are asked by the app itself
        try:
            installation = self.get(f"{self.place.path}/installation")
            made = self.create(
                f"/app/installations/{int(installation['id'])}/access_tokens",
                {"repositories": [self.place.name]},
                repeatable=True,  # a second token does no harm
            )
        except GitHubRefused as refused:
            raise GitHubRefused(
                f"the GitHub App got no token for {self.place.repository}: {refused}; is it installed there?",
                status=refused.status,
            ) from None
        finally:
            self._token = None
        self._login = f"{installation['app_slug']}[bot]"
        return Secret(str(made["token"]))


def _parsed(answer: Answer) -> Any:
    if not answer.content:
        return None
    try:
        return json.loads(answer.content)
    except ValueError:
        raise GitHubError(
            f"the answer is no JSON but {shown.one_line(answer.beginning, limit=80)!r}: does GITHUB_API_URL "
            "name the REST interface? For GitHub Enterprise it ends in /api/v3"
        ) from None


def _words_of(answer: Answer) -> str:
    """What GitHub said went wrong, in its words."""
    try:
        said = json.loads(answer.content)
        errors = said.get("errors") or []
        details = [e if isinstance(e, str) else e.get("message") or e.get("code") or "" for e in errors]
        return ": ".join([str(said.get("message", "")), *filter(None, map(str, details))])
    except (ValueError, AttributeError, TypeError):
        return answer.beginning


def _remedy(answer: Answer) -> str:
    needed = answer.headers.get("x-accepted-github-permissions")
    it_needs = f"; it needs {shown.visible(needed, limit=80)}" if needed else ""
    return {
        401: " (the token is wrong or has run out)",
        403: f" (the token may not do this{it_needs})",
        404: " (there is no such thing, or the token may not see it)",
    }.get(answer.status, "")
