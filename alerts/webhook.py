"""Post a message to a webhook: the URL is a secret, so no message, log or traceback holds it."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from alerts.errors import WebhookError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    import httpx

TIMEOUT_S = 30.0
KEY_HEADER = "X-Kernelwatch-Key"
TIME_HEADER = "X-Kernelwatch-Timestamp"
SIGNATURE_HEADER = "X-Kernelwatch-Signature"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_ERROR_WORD = re.compile(r"[a-z_]{1,40}")  # how Slack says what is wrong: invalid_blocks
_ANSWER_MAX = 2_000
_RETRY_MAX_S = 86_400.0
_TOO_MANY, _TIMED_OUT, _TOO_EARLY, _SERVER_ERRORS = 429, 408, 425, 500


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 over timestamp, a dot and the body: ``sha256=`` and 64 hexadecimal digits."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def post(
    body: str,
    *,
    key: str,
    url_variable: str,
    signed_by: str | None,
    environment: Mapping[str, str],
    now: datetime,
) -> None:
    """Post a body once.

    Args:
        body: JSON in ASCII.
        key: of the message; a receiver that has seen it may leave it out.
        url_variable: the environment variable with the URL.
        signed_by: the environment variable with the secret of the signature, or None.
        environment: where the variables are looked up.
        now: the instant that is signed.

    Raises:
        WebhookError: a variable is not set or is no URL, or the call did not succeed.
    """
    import httpx

    url = _url(url_variable, environment)
    content = body.encode("ascii")
    headers = {"Content-Type": "application/json", KEY_HEADER: key}
    if signed_by is not None:
        timestamp = str(int(now.timestamp()))
        headers[TIME_HEADER] = timestamp
        headers[SIGNATURE_HEADER] = signature(_secret(signed_by, environment), timestamp, content)
    try:
        with _unlogged(), httpx.Client(timeout=TIMEOUT_S, follow_redirects=False) as client:
            response = client.post(url, content=content, headers=headers)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise WebhookError(
            f"the webhook in ${url_variable} cannot be reached ({type(error).__name__}): it is tried again",
            away=True,
        ) from None
    except httpx.HTTPError as error:
        raise WebhookError(
            f"the webhook in ${url_variable} gave no answer ({type(error).__name__}): it may have taken the "
            "message, and readers may get it twice",
            uncertain=True,
            away=True,
        ) from None
    _check(response, url_variable)


def _url(variable: str, environment: Mapping[str, str]) -> httpx.URL:
    import httpx

    raw = environment.get(variable, "").strip()
    if not raw:
        raise WebhookError(
            f"the environment variable {variable} is not set: put the webhook's URL into it", away=True
        )
    try:
        url = httpx.URL(raw)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme != "https" and not (url.scheme == "http" and url.host in _LOOPBACK):
        raise WebhookError(
            f"the environment variable {variable} holds no https URL: copy the webhook's address again",
            away=True,
        )
    return url


def _secret(variable: str, environment: Mapping[str, str]) -> str:
    secret = environment.get(variable, "")
    if not secret:
        raise WebhookError(
            f"the environment variable {variable} is not set: put the secret of the signature into it",
            away=True,
        )
    return secret


def _check(response: httpx.Response, url_variable: str) -> None:
    """Refuse every answer but success. Of what the other side says only a word that is no secret is shown."""
    status = response.status_code
    if response.is_success:
        return
    said = response.content[:_ANSWER_MAX].decode("ascii", "replace").strip()
    word = f" {said}" if _ERROR_WORD.fullmatch(said) else ""
    again = status in (_TIMED_OUT, _TOO_EARLY, _TOO_MANY) or status >= _SERVER_ERRORS
    what = "it is tried again" if again else "check the URL and what the other side expects"
    raise WebhookError(
        f"the webhook in ${url_variable} answered {status}{word}: {what}",
        lasting=not again,
        away=again,
        retry_after_s=_retry_after(response.headers.get("Retry-After", "")),
    )


def _retry_after(value: str) -> float:
    return min(float(value), _RETRY_MAX_S) if re.fullmatch(r"\d{1,9}", value.strip()) else 0.0


@contextmanager
def _unlogged() -> Iterator[None]:
    """Httpx logs every URL that it asks for; these must not be in any log."""
    logger = logging.getLogger("httpx")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
