"""Bundles: a run as one file that travels between machines. The format is in docs/bundle.md.

A bundle may come from anywhere, a stranger's pull request included. Reading one runs no
code, takes bounded memory, and ends in a run that could have been measured here, or in a
message that says what is wrong and where.
"""

from __future__ import annotations

import gzip
import json
import uuid
import zlib
from typing import TYPE_CHECKING, Any, NoReturn

from store.checks import check_run
from store.errors import BundleInvalid, StoreError, StoreInvalid
from store.plain import PlainInvalid, from_plain, to_plain
from store.records import Run

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "kernelwatch-run"
VERSION = 3  # 2 knows paired runs and runs made for a study; 3 those that confirm another, and tags
BUNDLE_SUFFIX = ".kernelwatch.gz"
MIB = 2**20
BUNDLE_BYTES_MAX = 32 * MIB
DOCUMENT_BYTES_MAX = 128 * MIB
# A run of 100 benchmarks x 8 windows x 200 samples has about 1.3 million values.
VALUES_MAX = 5_000_000
CONTAINERS_MAX = 500_000
_WORDS_LENGTH_MAX = 1_000  # a message repeats only so much of a hostile file


def write_bundle(run: Run, path: Path) -> None:
    """Write a run to a file, whole or not at all; the same run gives the same bytes.

    Raises:
        StoreInvalid: the run contradicts itself.
        BundleInvalid: the run is larger than ``read_bundle`` would take.
        StoreError: the file could not be written.
    """
    check_run(run)
    document = {"format": FORMAT, "version": VERSION, "run": to_plain(run)}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    content = text.encode("utf-8")
    _check_size(content)
    packed = gzip.compress(content, mtime=0)
    if len(packed) > BUNDLE_BYTES_MAX:
        raise BundleInvalid(_too_large(len(packed), BUNDLE_BYTES_MAX))
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        draft.write_bytes(packed)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StoreError(f"cannot write the bundle {path}: {error.strerror or error}") from error


def read_bundle(path: Path, *, max_bytes: int = BUNDLE_BYTES_MAX) -> Run:
    """Read a run from a file that may come from anywhere.

    Args:
        path: the bundle.
        max_bytes: larger files are refused unread.

    Raises:
        BundleInvalid: the file is no bundle of a version that is known here, is too large,
            or its run contradicts itself; says what and where.
    """
    try:
        return _parsed(_unpacked(path, max_bytes))
    except (PlainInvalid, BundleInvalid, StoreInvalid) as problem:
        raise BundleInvalid(f"{path}: {str(problem)[:_WORDS_LENGTH_MAX]}") from None


def _unpacked(path: Path, max_bytes: int) -> bytes:
    """The document in the file, never more of it than is allowed."""
    if not path.is_file():
        raise BundleInvalid("there is no such file")
    size = path.stat().st_size
    if size > max_bytes:
        raise BundleInvalid(_too_large(size, max_bytes))
    try:
        with gzip.open(path) as stream:
            content = stream.read(DOCUMENT_BYTES_MAX + 1)
    except (gzip.BadGzipFile, zlib.error):
        raise BundleInvalid("this is not a gzip file, or it is damaged: export it again") from None
    except EOFError:
        raise BundleInvalid("the file ends too early: copy or export it again") from None
    except OSError as error:
        raise BundleInvalid(f"the file cannot be read: {error.strerror or error}") from None
    _check_size(content)
    return content


def _check_size(content: bytes) -> None:
    """Refuse a document that would take much memory as Python objects."""
    if len(content) > DOCUMENT_BYTES_MAX:
        raise BundleInvalid(f"the document is larger than {DOCUMENT_BYTES_MAX // MIB} MiB: split the run up")
    if content.count(b",") > VALUES_MAX or content.count(b"[") + content.count(b"{") > CONTAINERS_MAX:
        raise BundleInvalid(
            f"the document holds more than {VALUES_MAX} values or {CONTAINERS_MAX} lists and objects: "
            "split the run up"
        )


def _parsed(content: bytes) -> Run:
    try:
        document = json.loads(content.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise BundleInvalid(f"the document is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise BundleInvalid("the document is nested too deeply") from None
    except ValueError as error:  # JSON that is none, or a number of more digits than Python takes
        raise BundleInvalid(f"the document is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BundleInvalid(f'the document does not begin with "format": "{FORMAT}": it is no run bundle')
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BundleInvalid('the document has no whole number as "version"')
    if version > VERSION:
        raise BundleInvalid(
            f"the bundle has a newer format version than {VERSION}, the newest that this kernelwatch "
            "reads: upgrade kernelwatch here"
        )
    return _run_of(document)


def _run_of(document: dict[str, Any]) -> Run:
    others = sorted(document.keys() - {"format", "version", "run"})
    if others:
        raise BundleInvalid(f"the document has a field {others[0][:60]!a} that this version does not know")
    if "run" not in document:
        raise BundleInvalid("the document lacks the field 'run'")
    try:
        run = from_plain(Run, document["run"])
    except PlainInvalid as problem:
        raise problem.inside("run") from None
    check_run(run)
    return run


def _refuse(constant: str) -> NoReturn:
    raise BundleInvalid(f"the document holds {constant}, which is no number: leave the value out")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {}
    for name, value in pairs:
        if name in found:
            raise BundleInvalid(f"an object has the field {name[:60]!a} twice")
        found[name] = value
    return found


def _too_large(size: int, limit: int) -> str:
    return (
        f"the bundle has {size / MIB:.1f} MiB, and at most {limit / MIB:.1f} MiB are taken: split the run up"
    )
