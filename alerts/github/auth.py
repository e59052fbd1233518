"""Who speaks to GitHub: a token, or an app that gets itself one. Secrets are never shown.

Source: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from alerts.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_VARIABLES = ("KERNELWATCH_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
APP_VARIABLE = "KERNELWATCH_GITHUB_APP_ID"
KEY_VARIABLE = "KERNELWATCH_GITHUB_APP_KEY"  # the PEM itself, or the path of a file that holds it
# GitHub refuses a JWT that lives longer than ten minutes, or that was made in its future.
_JWT_LIFE_S = 540
_CLOCK_SKEW_S = 60
_PEM = "-----BEGIN"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A word that may be sent to GitHub and shown to nobody."""

    word: str

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it comes: of a person, of a workflow, or of an app's installation."""

    secret: Secret


@dataclass(frozen=True, slots=True)
class App:
    """A GitHub App, which asks for a token of an hour per repository.

    Attributes:
        app_id: the app's id or client id.
        key: its private key, as PEM.
    """

    app_id: str
    key: Secret

    def jwt(self, now_s: float) -> Secret:
        """What proves to GitHub that it is this app, for nine minutes from ``now_s`` (Unix time).

        Raises:
            GitHubError: PyJWT is missing, or the key is none.
        """
        import jwt

        claims = {"iat": int(now_s) - _CLOCK_SKEW_S, "exp": int(now_s) + _JWT_LIFE_S, "iss": self.app_id}
        try:
            return Secret(jwt.encode(claims, self.key.word, algorithm="RS256"))
        except (ValueError, TypeError, jwt.PyJWTError):
            # The library's own words may hold a part of the key.
            raise GitHubError(
                f"{KEY_VARIABLE} holds no RSA private key: give the .pem that GitHub made for the app, "
                "or the path of that file"
            ) from None


def credentials_of(environment: Mapping[str, str]) -> Token | App:
    """The app of the environment, or else its token.

    Raises:
        GitHubError: there is neither, or half of an app.
    """
    app_id, key = environment.get(APP_VARIABLE, "").strip(), environment.get(KEY_VARIABLE, "").strip()
    if bool(app_id) != bool(key):
        raise GitHubError(f"a GitHub App needs both {APP_VARIABLE} and {KEY_VARIABLE}, and one is not set")
    if app_id:
        if importlib.util.find_spec("jwt") is None:
            raise GitHubError("a GitHub App needs PyJWT: install 'kernelwatch[alerts]'")
        return App(app_id, Secret(key if _PEM in key else _key_in(key)))
    for variable in TOKEN_VARIABLES:
        if word := environment.get(variable, "").strip():
            if not word.isascii() or not word.isprintable() or " " in word:
                raise GitHubError(f"{variable} holds characters that no token has: copy it again")
            return Token(Secret(word))
    raise GitHubError(
        f"no GitHub token: set {TOKEN_VARIABLES[1]} (in a workflow: `env: {{GITHUB_TOKEN: "
        f"${{{{ github.token }}}}}}`), or {APP_VARIABLE} and {KEY_VARIABLE} for an app"
    )


def _key_in(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeError):
        # Not naming the path: where the variable holds half a key, that would show it.
        raise GitHubError(
            f"{KEY_VARIABLE} is neither a PEM nor the path of a readable file that holds one"
        ) from None
