"""One request over httpx: its redirects, how much of an answer is read, and where a token may go."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx

from alerts.errors import GitHubError
from store import shown

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from alerts.github.auth import Secret

API_VERSION = "2022-11-28"
MIB = 2**20
_ANSWER_MAX = 64 * MIB
_ANSWER_DEADLINE_S = 120.0
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_REDIRECTS = (301, 302, 303, 307, 308)
_REDIRECTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked.

    Attributes:
        body: sent as JSON.
        repeatable: whether asking twice does no harm.
        max_bytes: a longer answer is an error.
        elsewhere: whether a redirect may lead to another server, which then sees no token.
    """

    method: str
    url: httpx.URL
    body: Mapping[str, Any] | None = None
    repeatable: bool = True
    max_bytes: int = _ANSWER_MAX
    elsewhere: bool = False

    @property
    def what(self) -> str:
        """The request in a message, without its query."""
        return f"{self.method} {shown.visible(self.url.path)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, read in full."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def beginning(self) -> str:
        """Its first characters, for messages."""
        return self.content[:2000].decode("utf-8", "replace")

    @property
    def following(self) -> str | None:
        """The address of the next page, from the header ``Link``."""
        return httpx.Response(200, headers=self.headers).links.get("next", {}).get("url")


class Transport:
    """Connections to one GitHub.

    Args:
        api_url: where its REST interface lies.

    Raises:
        GitHubError: a token must not be sent to that address.
    """

    def __init__(self, api_url: str) -> None:
        self._base = _checked_base(api_url)
        self._http = httpx.Client(timeout=_TIMEOUT, follow_redirects=False, verify=_trust())

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def url(self, path: str, query: Mapping[str, str] | None = None) -> httpx.URL:
        """The whole address of a path such as ``/user``."""
        url = httpx.URL(str(self._base).rstrip("/") + path)
        return url.copy_merge_params(dict(query)) if query else url

    def joined(self, url: httpx.URL, target: str) -> httpx.URL:
        """A page that an answer points to.

        Raises:
            GitHubError: it lies on another server.
        """
        there = url.join(target)
        if not self._is_own(there):
            raise GitHubError(f"the next page lies on {shown.visible(there.host)}: not followed")
        return there

    def send(self, request: Request, token: Secret) -> Answer:
        """The answer behind redirects. GitHub redirects for renamed repositories, and for files.

        Raises:
            httpx.RequestError: the connection failed.
            GitHubError: the answer is too long, or a redirect leads where it may not.
        """
        secret: Secret | None = token
        for _ in range(_REDIRECTS_MAX + 1):
            answer = self._once(request, secret)
            target = answer.headers.get("location")
            if answer.status not in _REDIRECTS or target is None:
                return answer
            there = request.url.join(target)
            if not self._is_own(there):
                if not request.elsewhere or not _is_safe(there):
                    raise GitHubError(
                        f"{request.what} is redirected to {shown.visible(there.host)}: not followed"
                    )
                secret = None
            request = replace(request, url=there)
        raise GitHubError(f"{request.what} is redirected in circles")

    def _once(self, request: Request, token: Secret | None) -> Answer:
        headers = {"Accept": "application/vnd.github+json", "User-Agent": "kernelwatch"}
        if token is not None:
            headers |= {"Authorization": f"Bearer {token.word}", "X-GitHub-Api-Version": API_VERSION}
        deadline = time.monotonic() + _ANSWER_DEADLINE_S
        with self._http.stream(request.method, request.url, headers=headers, json=request.body) as response:
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > request.max_bytes:
                    raise GitHubError(f"{request.what}: the answer is longer than {request.max_bytes} bytes")
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the answer did not end")
            return Answer(response.status_code, response.headers, bytes(content))

    def _is_own(self, url: httpx.URL) -> bool:
        own = self._base
        return (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)


@cache
def _trust() -> ssl.SSLContext:
    """Whom to trust, as httpx has it by default; reading the certificates takes a while."""
    return httpx.create_ssl_context()


def _checked_base(api_url: str) -> httpx.URL:
    try:
        url = httpx.URL(api_url)
    except httpx.InvalidURL as error:
        raise GitHubError(f"GITHUB_API_URL is no address: {shown.one_line(str(error))}") from None
    if url.userinfo or url.query or not _is_safe(url):
        raise GitHubError(
            f"GITHUB_API_URL ({shown.visible(url.host) or 'no server'}) would give the token away: "
            "use https://HOST/api/v3, without user name and question mark"
        )
    return url


def _is_safe(url: httpx.URL) -> bool:
    """Whether nobody on the way can read along: TLS, or this machine alone."""
    if url.scheme == "https":
        return bool(url.host)
    try:
        loopback = ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        loopback = url.host == "localhost"
    return url.scheme == "http" and loopback
