"""A sign-in service on loopback: OpenID Connect over real HTTP, with the code flow and PKCE."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT_ID = "kernelwatch-pages"
CLIENT_SECRET = "only for this test"  # noqa: S105 - of a service that lives as long as a test
KEY_ID = "first"


def a_key() -> rsa.RSAPrivateKey:
    """A key to sign tokens with."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """What the service knows, and what came to pass.

    Attributes:
        issuer: its address.
        redirect_uris: where it sends people back to, and nowhere else.
        person: the claims about whoever presses the button.
        known_key: what its key set offers.
        signing_key: what it signs with.
        refused: requests it turned away, and why.
        tokens, goodbyes: how many tokens it gave out, and how many people signed out.
    """

    issuer: str
    redirect_uris: set[str]
    person: dict[str, str]
    known_key: rsa.RSAPrivateKey = field(default_factory=a_key)
    signing_key: rsa.RSAPrivateKey | None = None
    refused: list[str] = field(default_factory=list)
    tokens: int = 0
    goodbyes: int = 0
    _granted: dict[str, dict[str, str]] = field(default_factory=dict)

    def metadata(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/goodbye",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        }

    def keys(self) -> dict[str, Any]:
        """The key set, without private parts."""
        public = RSAAlgorithm.to_jwk(self.known_key.public_key(), as_dict=True)
        return {"keys": [public | {"kid": KEY_ID, "use": "sig", "alg": "RS256"}]}

    def problem_with(self, asked: dict[str, str]) -> str | None:
        """Why a request to sign somebody in is turned away, or None."""
        checks = {
            "client_id": asked.get("client_id") == CLIENT_ID,
            "redirect_uri": asked.get("redirect_uri") in self.redirect_uris,
            "response_type": asked.get("response_type") == "code",
            "scope": "openid" in asked.get("scope", "").split(),
            "state": bool(asked.get("state")),
            "nonce": bool(asked.get("nonce")),
            "code_challenge": asked.get("code_challenge_method") == "S256" and "code_challenge" in asked,
        }
        return next((name for name, is_right in checks.items() if not is_right), None)

    def grant(self, asked: dict[str, str]) -> str:
        """A code for what was asked, good for one token."""
        code = secrets.token_urlsafe(16)
        self._granted[code] = asked
        return code

    def token(self, given: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """What a code is exchanged for; None where anything does not fit the request it was given for."""
        expected = base64.b64encode(urlencode_pair(CLIENT_ID, CLIENT_SECRET)).decode()
        asked = self._granted.pop(given.get("code", ""), {})
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            authorization != f"Basic {expected}"
            or given.get("redirect_uri") != asked.get("redirect_uri")
            or challenge != asked.get("code_challenge")
        ):
            return None
        self.tokens += 1
        now = int(time.time())
        claims = self.person | {
            "iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"],
        }  # fmt: skip
        signed = jwt.encode(
            claims, self.signing_key or self.known_key, algorithm="RS256", headers={"kid": KEY_ID}
        )
        return {"access_token": "opaque", "token_type": "Bearer", "expires_in": 300, "id_token": signed}


def urlencode_pair(name: str, secret: str) -> bytes:
    """Name and secret as a client sends them."""
    return f"{name}:{secret}".encode()


class _Handler(BaseHTTPRequestHandler):
    provider: ClassVar[Provider]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = dict(parse_qsl(parts.query))
        if parts.path == "/.well-known/openid-configuration":
            self._json(self.provider.metadata())
        elif parts.path == "/keys":
            self._json(self.provider.keys())
        elif parts.path == "/authorize":
            self._ask(asked)
        elif (
            parts.path == "/goodbye" and asked.get("post_logout_redirect_uri") in self.provider.redirect_uris
        ):
            self.provider.goodbyes += 1
            self._redirect(asked["post_logout_redirect_uri"])
        else:
            self._refuse(f"GET {parts.path}")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        given = dict(parse_qsl(self.rfile.read(length).decode()))
        if self.path == "/authorize" and self.provider.problem_with(given) is None:
            back = {"code": self.provider.grant(given), "state": given["state"]}
            self._redirect(f"{given['redirect_uri']}?{urlencode(back)}")
            return
        token = None
        if self.path == "/token":
            token = self.provider.token(given, self.headers.get("Authorization", ""))
        if token is None:
            self._refuse(f"POST {self.path}")
        else:
            self._json(token)

    def _ask(self, asked: dict[str, str]) -> None:
        """The page on which somebody says who they are."""
        problem = self.provider.problem_with(asked)
        if problem is not None:
            self._refuse(problem)
            return
        hidden = "".join(
            f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
            for name, value in asked.items()
        )
        form = f'<form method="post" action="/authorize">{hidden}<button>It is me</button></form>'
        page = f'<link rel="icon" href="data:,">{form}'  # or the browser asks for one
        self._send(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8")

    def _json(self, document: dict[str, Any]) -> None:
        self._send(HTTPStatus.OK, json.dumps(document).encode(), "application/json")

    def _refuse(self, why: str) -> None:
        self.provider.refused.append(why)
        self._send(
            HTTPStatus.BAD_REQUEST, json.dumps({"error": "invalid_request"}).encode(), "application/json"
        )

    def _redirect(self, address: str) -> None:
        self._send(HTTPStatus.FOUND, b"", "text/plain", Location=address)

    def _send(self, status: HTTPStatus, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def signing_in(person: dict[str, str]) -> Iterator[Provider]:
    """Run the service; who presses its button is ``person``."""

    class Handler(_Handler):
        """One for each service: they may run side by side."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}", set(), person)
        Handler.provider = provider
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
