"""Runs out of a workflow's artifacts, which a stranger's pull request may have written.

Nothing of an archive is unpacked to where it wants: no name becomes a path, its sizes are bounded
while it is read, and each file but one of words has to be a bundle that contradicts nothing.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.errors import ArtifactUnusable
from store import shown
from store.bundle import BUNDLE_BYTES_MAX, MIB, read_bundle
from store.errors import BundleInvalid

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.github.client import Client
    from store.records import Run

ARCHIVE_BYTES_MAX = 64 * MIB
WORDS_FILE = "collect.txt"  # what .github/actions/measure/run.sh calls it
_ARTIFACTS_MAX = 16
_FILES_MAX = 32
_WORDS_BYTES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Content:
    """What artifacts hold.

    Attributes:
        runs: in their order.
        words: the end of what ``collect`` said where it failed; a stranger may have written it.
    """

    runs: tuple[Run, ...]
    words: str = ""


def fetch_content(client: Client, run_id: int, name: str, *, folder: Path) -> Content:
    """What the artifacts of a workflow run hold that are called ``name`` or begin with ``name-``.

    Args:
        client: needs the permission ``actions: read``.
        run_id: the workflow run.
        name: of the artifact.
        folder: an empty one for the bundles.

    Raises:
        ArtifactUnusable: there is no such artifact, or one is not what ``collect --output`` writes.
        GitHubError: GitHub could not be asked.
    """
    listed = client.items(f"{client.place.path}/actions/runs/{run_id}/artifacts", key="artifacts")
    wanted = [
        one
        for one in listed
        if not one["expired"] and (one["name"] == name or one["name"].startswith(f"{name}-"))
    ]
    if not wanted:
        raise ArtifactUnusable(
            f"workflow run {run_id} has no artifact {shown.visible(name)!r}: did it end before it measured?"
        )
    if len(wanted) > _ARTIFACTS_MAX:
        raise ArtifactUnusable(
            f"workflow run {run_id} has {len(wanted)} artifacts called {shown.visible(name)!r}"
        )
    runs: list[Run] = []
    words: list[str] = []
    for artifact in wanted:
        path = f"{client.place.path}/actions/artifacts/{int(artifact['id'])}/zip"
        archive = client.download(path, max_bytes=ARCHIVE_BYTES_MAX)
        content = content_of(archive, folder=folder, name=shown.visible(artifact["name"]))
        runs += content.runs
        words += [content.words] if content.words else []
    return Content(tuple(runs), "\n".join(words))


def content_of(archive: bytes, *, folder: Path, name: str) -> Content:
    """What a zip archive of bundles holds.

    Raises:
        ArtifactUnusable: it is no such archive; says what is wrong.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            if len(entries) > _FILES_MAX:
                raise ArtifactUnusable(
                    f"the artifact {name} holds {len(entries)} files, more than {_FILES_MAX}"
                )
            runs = tuple(
                _run_in(opened, entry, folder / f"{index}.kernelwatch.gz", name)
                for index, entry in enumerate(entries)
                if entry.filename != WORDS_FILE
            )
            words = "\n".join(_words_in(opened, entry) for entry in entries if entry.filename == WORDS_FILE)
            return Content(runs, words)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        said = shown.one_line(str(error), limit=200)
        raise ArtifactUnusable(f"the artifact {name} is no archive that can be read: {said}") from error


def _words_in(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    with opened.open(entry) as file:
        return file.read(_WORDS_BYTES_MAX).decode("utf-8", "replace")


def _run_in(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, name: str) -> Run:
    with opened.open(entry) as file:
        content = file.read(BUNDLE_BYTES_MAX + 1)
    if len(content) > BUNDLE_BYTES_MAX:
        raise ArtifactUnusable(f"the artifact {name} holds a file of more than {BUNDLE_BYTES_MAX} bytes")
    place.write_bytes(content)
    try:
        return read_bundle(place)
    except BundleInvalid as error:
        called = shown.visible(entry.filename, limit=80)
        raise ArtifactUnusable(
            f"{called!r} in the artifact {name} is no run as `collect --output` writes it: "
            f"{shown.one_line(str(error), limit=300)}"
        ) from error
