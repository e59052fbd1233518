"""A stand-in for GitHub: real HTTP on loopback, with a memory, and faults where a test wants them.

GitHub's own description judges every request and every answer; what it objects to is kept in
``violations``, which a test's fixture looks at in the end.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from fake_github_answers import BOT, ROUTES, Asked, Reply
from github_description import violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TOKEN = "ghs_" + "T0ken" * 7


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        kind: ``before`` (cut, nothing was done), ``after`` (done, the answer is lost), ``within``
            (done, half of the answer arrives), or ``answer`` (refused with ``status``).
    """

    kind: str
    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


class FakeGitHub:
    """The state of one repository, and what was asked of it."""

    def __init__(self) -> None:
        self.url = ""  # set when it listens
        self.logins = {TOKEN: BOT}
        self.page_max = 100
        self.comments: dict[int, dict[str, Any]] = {}
        self.pulls: dict[int, dict[str, Any]] = {}
        self.checks: dict[int, dict[str, Any]] = {}
        self.branches: dict[str, str] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        self.artifacts: dict[int, list[tuple[str, bytes]]] = {}
        self.runs: list[dict[str, Any]] = []
        self.rights: dict[str, str] = {}
        self.reactions: list[tuple[int, str]] = []
        self.reruns: list[int] = []
        self.forbidden: set[str] = set()  # methods and path ends such as "POST /git/refs"
        self.faults: dict[int, Fault] = {}  # by number of the request, the first is 1
        self.log: list[str] = []
        self.tokens_seen: set[str] = set()
        self.violations: list[str] = []
        self.before_each: Callable[[str], None] = lambda _: None
        self.lock = threading.RLock()
        self._next_id = 100

    def number(self) -> int:
        """A fresh id."""
        self._next_id += 1
        return self._next_id

    def bodies(self, issue: int = 7) -> list[str]:
        """The comments on a pull request, oldest first."""
        return [c["body"] for _, c in sorted(self.comments.items()) if c["issue"] == issue]

    def say(self, body: str, *, login: str = BOT, issue: int = 7) -> int:
        """Leave a comment as somebody."""
        number = self.number()
        self.comments[number] = {"issue": issue, "login": login, "body": body}
        return number

    def answer(self, method: str, target: str, body: Any, token: str | None) -> Reply:
        """What GitHub would answer; changes the state."""
        parts = urlsplit(target)
        if parts.path.startswith("/blob/"):  # another server, as far as the client can see
            return Reply(200, file=self._blob(parts.path))
        login = self.logins.get(token or "")
        if login is None and (token or "").count(".") != 2:  # a JWT has three parts
            return Reply(401, {"message": "Bad credentials"})
        if any(f"{method} {parts.path}".startswith(f.split()[0]) and parts.path.endswith(f.split()[1])
               for f in self.forbidden):  # fmt: skip
            return Reply(
                403,
                {"message": "Resource not accessible by integration"},
                {"x-accepted-github-permissions": "contents=write"},
            )
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        for verb, pattern, handler in ROUTES:
            match = pattern.fullmatch(parts.path)
            if verb == method and match:
                groups = {name: unquote(value) for name, value in match.groupdict().items()}
                return handler(self, Asked(groups, query, body, login))
        return Reply(404, {"message": "Not Found"})

    def _blob(self, path: str) -> bytes:
        return next(
            content
            for number, listed in self.artifacts.items()
            for index, (_, content) in enumerate(listed)
            if path == f"/blob/{number}-{index}"
        )

    def page(self, items: list[Any], path: str, query: Mapping[str, str]) -> Reply:
        """One page of a list, with the way to the next."""
        size = min(int(query.get("per_page", "30")), self.page_max)
        page = int(query.get("page", "1"))
        headers = {}
        if page * size < len(items):
            rest = "&".join(f"{k}={v}" for k, v in query.items() if k != "page")
            headers["Link"] = f'<{self.url}{path}?{rest}&page={page + 1}>; rel="next"'
        return Reply(200, items[(page - 1) * size : page * size], headers)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeGitHub

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        given = self.headers.get("Authorization")
        hub = self.hub
        with hub.lock:
            asked = f"{self.command} {urlsplit(self.path).path}"
            hub.log.append(asked)
            hub.before_each(asked)
            if given is not None:
                hub.tokens_seen.add(f"{self.headers['Host'].partition(':')[0]} {given}")
            fault = hub.faults.get(len(hub.log))
            if fault is not None and fault.kind == "before":
                return self._cut()
            if fault is not None and fault.kind == "answer":
                reply = Reply(
                    fault.status,
                    {"message": "Bad luck"} if fault.body is None else fault.body,
                    dict(fault.headers),
                )
            else:
                reply = hub.answer(
                    self.command, self.path, body, (given or "").removeprefix("Bearer ") or None
                )
            if not self.path.startswith("/blob/"):
                status = None if fault is not None and fault.kind == "answer" else reply.status
                hub.violations += violations(self.command, self.path, body, status, reply.body)
        if fault is not None and fault.kind == "after":
            return self._cut()
        return self._send(reply, half=fault is not None and fault.kind == "within")

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - names of http.server

    def _send(self, reply: Reply, *, half: bool) -> None:
        content = reply.file if reply.file is not None else b""
        if reply.body is not None:
            content = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self._cut()

    def _cut(self) -> None:
        """End the connection the hard way, with a reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A connection that was cut on purpose is no error."""


@contextmanager
def listening(hub: FakeGitHub) -> Iterator[FakeGitHub]:
    """The hub on a port of this machine."""
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
