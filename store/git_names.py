"""The name under which the store knows a repository."""

from __future__ import annotations

from urllib.parse import urlsplit


def repository_name(url: str) -> str | None:
    """``host/owner/name`` for the address of a repository; its last part for a local path.

    Scheme, user, password, port and ``.git`` are dropped: the same repository has the same
    name however it was cloned, and no credential reaches the store.
    """
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        before, colon, after = url.partition(":")
        is_remote = bool(colon) and "/" not in before
        host, path = (before.rpartition("@")[2].lower(), after) if is_remote else ("", url)
    names = [name for name in path.split("/") if name not in ("", ".", "..", "~")]
    if not names:
        return None
    names[-1] = names[-1].removesuffix(".git") or names[-1]
    return "/".join([host, *names]) if host else names[-1]
