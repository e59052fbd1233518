"""Whether people sign in before they decide: found and checked before the pages are served.

Streamlit passes over a file of secrets that it cannot read, and would then ask nobody to sign
in. So such a file is either in order here, or a reason not to start.
"""

from __future__ import annotations

import importlib.util
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from dashboard.errors import SignInInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGN_IN_VARIABLE = "KERNELWATCH_SIGN_IN"  # set for the server by ``dashboard``
COOKIE_SECRET_LENGTH_MIN = 32  # characters; it signs who somebody is
_USUAL = Path(".streamlit") / "secrets.toml"
_CALLBACK = "oauth2callback"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NEEDED = {
    "redirect_uri": "the address of these pages with oauth2callback behind it",
    "cookie_secret": "a long random string",
    "client_id": "the name that the sign-in service has for these pages",
    "client_secret": "what these pages prove themselves with to the sign-in service",
    "server_metadata_url": "the address of its .well-known/openid-configuration",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """Sign-in that is in order, as far as a file can tell.

    Attributes:
        file: where it is described.
        redirect_uri: where the sign-in service sends people back to.
        service: the host of the sign-in service.
    """

    file: Path
    redirect_uri: str
    service: str

    @property
    def address(self) -> str:
        """The one address of the pages under which sign-in works."""
        return self.redirect_uri.removesuffix(_CALLBACK)

    @property
    def host(self) -> str:
        """The host of that address."""
        return urlsplit(self.redirect_uri).hostname or ""

    @property
    def is_readable_on_the_way(self) -> bool:
        """Whether who somebody is travels through a network without encryption."""
        return urlsplit(self.redirect_uri).scheme == "http" and self.host not in _LOOPBACK


def is_required() -> bool:
    """Whether this server was started with sign-in."""
    return os.environ.get(SIGN_IN_VARIABLE) == "1"


def find_sign_in(given: Path | None, *, port: int, base_path: str) -> SignIn | None:
    """The sign-in to serve with; None where there is none.

    Args:
        given: the file that describes it. Where None, ``.streamlit/secrets.toml`` of the working
            directory, and else of the home directory, if it has a table ``auth``.
        port: takes the place of ``{port}`` in ``redirect_uri``.
        base_path: the path below which the pages are served.

    Raises:
        SignInInvalid: a file cannot be read, or does not say what is needed.
    """
    if given is not None:
        auth = _auth_of(given)
        if auth is None:
            raise SignInInvalid(f"{given} has no table [auth]: docs/sign-in.md shows one")
        return _checked(given, auth, port=port, base_path=base_path)
    for folder in (Path.cwd(), Path.home()):
        file = folder / _USUAL
        auth = _auth_of(file) if file.exists() else None
        if auth is not None:
            return _checked(file, auth, port=port, base_path=base_path)
    return None


def _auth_of(file: Path) -> Mapping[str, object] | None:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("auth")
    except (OSError, ValueError) as error:  # a TOMLDecodeError and a UnicodeDecodeError are ValueErrors
        raise SignInInvalid(
            f"{file} may describe sign-in and cannot be read: {error}. Mend it, or take it away; without "
            "it a name that somebody types would be believed"
        ) from error
    if table is not None and not isinstance(table, dict):
        raise SignInInvalid(f"{file}: auth is no table; write [auth] and its keys below that")
    return table


def _checked(file: Path, auth: Mapping[str, object], *, port: int, base_path: str) -> SignIn:
    values: dict[str, str] = {}
    for key, meaning in _NEEDED.items():
        value = auth.get(key)
        if not isinstance(value, str) or not value.strip():
            raise SignInInvalid(f"{file}: [auth] needs {key}, {meaning}")
        values[key] = value
    if len(values["cookie_secret"]) < COOKIE_SECRET_LENGTH_MIN:
        raise SignInInvalid(
            f"{file}: cookie_secret has fewer than {COOKIE_SECRET_LENGTH_MIN} characters. "
            "Whoever guesses it can decide as anybody. This makes one: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    redirect_uri = values["redirect_uri"].replace("{port}", str(port))
    back, metadata = _address(redirect_uri), _address(values["server_metadata_url"])
    path = "/".join(part for part in ("", base_path.strip("/"), _CALLBACK) if part)
    if back is None or back.path != f"/{path}" or back.query or back.fragment:
        raise SignInInvalid(
            f"{file}: redirect_uri {redirect_uri!r} has to be the address of these pages with /{path} behind "
            f"the host, such as https://perf.example.org/{path}: that is where people come back to"
        )
    if metadata is None:
        raise SignInInvalid(
            f"{file}: server_metadata_url {values['server_metadata_url']!r} is no web address: it ends "
            "with /.well-known/openid-configuration as a rule"
        )
    if any(importlib.util.find_spec(name) is None for name in ("authlib", "httpx")):
        raise SignInInvalid(
            f"{file} asks for sign-in, which needs Authlib: pip install 'kernelwatch[dashboard]'"
        )
    return SignIn(file=file.resolve(), redirect_uri=redirect_uri, service=metadata.hostname or "")


def _address(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return None
    return parts if host and parts.scheme in ("http", "https") else None
