"""Pictures that GitHub can show: files on a branch of their own, which the code never meets.

The branch begins with a commit without parents. A picture lies at a path made from its content,
so putting it there twice is putting it there once, and no comment ever shows another picture
than the one it was written with.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from alerts.errors import GitHubError, GitHubRefused, GitHubUnsure

if TYPE_CHECKING:
    from alerts.github.client import Client

_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_MISSING = 404
_THERE_ALREADY = (409, 422)
_ABOUT = """# Pictures of kernelwatch

Trends that comments on pull requests show. Nothing here is code. The branch may be deleted at any
time: older comments then lose their pictures, and the next one makes the branch again.
"""


class PictureBranch:
    """A branch that holds pictures.

    Args:
        client: who puts them there; needs the permission ``contents: write``.
        name: of the branch.

    Raises:
        GitHubError: that is no name for a branch.
    """

    def __init__(self, client: Client, name: str) -> None:
        if not _BRANCH.fullmatch(name) or ".." in name or name.endswith((".lock", ".")):
            raise GitHubError(f"{name!r} is no name for a branch of pictures: use letters, digits, - and /")
        self._client, self._name = client, name
        self._exists = False

    def put(self, png: bytes) -> str:
        """Put a picture there, and say where a comment can fetch it.

        Raises:
            GitHubError: it could not be put there.
        """
        self._ensure()
        path = f"trends/{hashlib.sha256(png).hexdigest()[:32]}.png"
        if not self._has(path):
            self._upload(path, png)
        place = self._client.place
        return f"{place.server_url}/{place.repository}/raw/{quote(self._name)}/{path}"

    def _has(self, path: str) -> bool:
        try:
            self._client.get(f"{self._client.place.path}/contents/{path}", {"ref": self._name})
        except GitHubRefused as refused:
            if refused.status != _MISSING:
                raise
            return False
        return True

    def _upload(self, path: str, png: bytes) -> None:
        body = {
            "message": "Add a trend",
            "content": base64.b64encode(png).decode("ascii"),
            "branch": self._name,
        }
        try:
            self._client.change(f"{self._client.place.path}/contents/{path}", body, method="PUT")
        except GitHubRefused as refused:
            # Another job was faster, or an answer was lost: then it is there. Else this is an error.
            if refused.status not in _THERE_ALREADY or not self._has(path):
                raise

    def _ensure(self) -> None:
        """Make the branch where there is none."""
        if self._exists:
            return
        path = self._client.place.path
        try:
            self._client.get(f"{path}/git/ref/heads/{self._name}")
        except GitHubRefused as refused:
            if refused.status != _MISSING:
                raise
            self._begin()
        self._exists = True

    def _begin(self) -> None:
        path = self._client.place.path
        readme = {"path": "README.md", "mode": "100644", "type": "blob", "content": _ABOUT}
        # A tree or commit that nothing points to does no harm: these may be made twice.
        tree = self._client.create(f"{path}/git/trees", {"tree": [readme]}, repeatable=True)
        commit = self._client.create(
            f"{path}/git/commits",
            {"message": "Begin a branch for pictures", "tree": tree["sha"], "parents": []},
            repeatable=True,
        )
        branch = {"ref": f"refs/heads/{self._name}", "sha": commit["sha"]}
        try:
            self._client.create(f"{path}/git/refs", branch)
        except (GitHubRefused, GitHubUnsure) as error:
            if isinstance(error, GitHubRefused) and error.status not in _THERE_ALREADY:
                raise
            self._client.get(f"{path}/git/ref/heads/{self._name}")  # there all the same, or an error
