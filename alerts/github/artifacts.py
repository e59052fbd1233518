"""Runs out of a workflow's artifacts, which a stranger's pull request may have written.

Nothing of an archive is unpacked to where it wants: its names are ignored, its sizes are bounded
while it is read, and each file has to be a bundle that contradicts nothing.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

from alerts.errors import GitHubError
from store import shown
from store.bundle import BUNDLE_BYTES_MAX, MIB, read_bundle
from store.errors import BundleInvalid

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.github.client import Client
    from store.records import Run

ARCHIVE_BYTES_MAX = 64 * MIB
_ARTIFACTS_MAX = 16
_FILES_MAX = 32


def fetch_runs(client: Client, run_id: int, name: str, *, folder: Path) -> list[Run]:
    """The runs in the artifacts of a workflow run that are called ``name`` or begin with ``name-``.

    Args:
        client: needs the permission ``actions: read``.
        run_id: the workflow run.
        name: of the artifact.
        folder: an empty one for the bundles.

    Raises:
        GitHubError: there is no such artifact, or one is not what ``collect --output`` writes.
    """
    listed = client.items(f"{client.place.path}/actions/runs/{run_id}/artifacts", key="artifacts")
    wanted = [
        one
        for one in listed
        if not one["expired"] and (one["name"] == name or one["name"].startswith(f"{name}-"))
    ]
    if not wanted:
        raise GitHubError(
            f"workflow run {run_id} has no artifact {shown.visible(name)!r}: did it end before it measured?"
        )
    if len(wanted) > _ARTIFACTS_MAX:
        raise GitHubError(f"workflow run {run_id} has {len(wanted)} artifacts called {shown.visible(name)!r}")
    runs: list[Run] = []
    for artifact in wanted:
        path = f"{client.place.path}/actions/artifacts/{int(artifact['id'])}/zip"
        archive = client.download(path, max_bytes=ARCHIVE_BYTES_MAX)
        runs += runs_in(archive, folder=folder, name=shown.visible(artifact["name"]))
    return runs


def runs_in(archive: bytes, *, folder: Path, name: str) -> list[Run]:
    """The runs in a zip archive of bundles, in its order.

    Raises:
        GitHubError: it is no such archive; says what is wrong.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            if len(entries) > _FILES_MAX:
                raise GitHubError(f"the artifact {name} holds {len(entries)} files, more than {_FILES_MAX}")
            return [
                _run_in(opened, entry, folder / f"{index}.kernelwatch.gz", name)
                for index, entry in enumerate(entries)
            ]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        said = shown.one_line(str(error), limit=200)
        raise GitHubError(f"the artifact {name} is no archive that can be read: {said}") from error


def _run_in(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, name: str) -> Run:
    with opened.open(entry) as file:
        content = file.read(BUNDLE_BYTES_MAX + 1)
    if len(content) > BUNDLE_BYTES_MAX:
        raise GitHubError(f"the artifact {name} holds a file of more than {BUNDLE_BYTES_MAX} bytes")
    place.write_bytes(content)
    try:
        return read_bundle(place)
    except BundleInvalid as error:
        called = shown.visible(entry.filename, limit=80)
        raise GitHubError(
            f"{called!r} in the artifact {name} is no run as `collect --output` writes it: "
            f"{shown.one_line(str(error), limit=300)}"
        ) from error
