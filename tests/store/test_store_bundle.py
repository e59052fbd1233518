"""A bundle is a run, or it is refused with what is wrong and where; reading one cannot hurt."""

from __future__ import annotations

import copy
import gzip
import json
import os
import resource
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_measurement, a_run, a_window
from hypothesis import HealthCheck, Phase, given, settings
from run_strategies import runs

from store.bundle import BUNDLE_SUFFIX, read_bundle, write_bundle
from store.errors import BundleInvalid, StoreError, StoreInvalid
from store.records import PairedRole
from store.runs import find_runs, save_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.database import Database
    from store.records import Run

ROOT = Path(__file__).parents[2]


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    return tmp_path / f"run{BUNDLE_SUFFIX}"


@pytest.fixture(name="document", scope="module")
def _document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A good bundle as JSON, to be spoilt by each test in its own way."""
    file = tmp_path_factory.mktemp("bundle") / "good"
    write_bundle(a_run(measurements=(a_measurement(passes=3),), failures=(a_failure(),)), file)
    document: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return document


def put(file: Path, document: object) -> None:
    file.write_bytes(gzip.compress(json.dumps(document).encode()))


def refusal(file: Path) -> str:
    with pytest.raises(BundleInvalid) as caught:
        read_bundle(file)
    message = str(caught.value)
    assert str(file) in message
    assert len(message) < 2000
    return message


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(run=runs())
def test_any_run_comes_out_of_its_bundle_exactly(file: Path, run: Run) -> None:
    write_bundle(run, file)

    assert read_bundle(file) == run


def test_the_same_run_gives_the_same_bytes(file: Path, tmp_path: Path) -> None:
    write_bundle(a_run(), file)
    write_bundle(a_run(), tmp_path / "again")

    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_writing_replaces_a_file_whole_and_leaves_nothing_beside_it(file: Path) -> None:
    file.write_bytes(b"earlier")

    write_bundle(a_run(), file)

    assert read_bundle(file) == a_run()
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_bundle_can_be_read_without_kernelwatch(document: dict[str, Any]) -> None:
    window = document["run"]["measurements"][0]["windows"][0]

    assert (document["format"], document["version"]) == ("kernelwatch-run", 3)
    assert document["run"]["measurements"][0]["case"] == {
        "benchmark": "softmax",
        "parameters": {"rows": 1024},
    }
    assert len(window["samples_ms"]) == 30
    assert window["started_at"] == "2026-03-02T09:00:00+00:00"


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write the bundle"):
        write_bundle(a_run(), tmp_path / "nowhere" / "file")


def test_a_run_that_contradicts_itself_is_not_written(file: Path) -> None:
    with pytest.raises(StoreInvalid, match="twice"):
        write_bundle(a_run(measurements=(a_measurement(), a_measurement())), file)
    assert not file.exists()


def test_a_run_too_large_to_read_is_not_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.bundle.BUNDLE_BYTES_MAX", 1000)

    with pytest.raises(BundleInvalid, match=r"at most 0\.0 MiB"):
        write_bundle(a_run(), file)
    assert not file.exists()


def test_a_value_left_out_takes_its_default(file: Path, document: dict[str, Any]) -> None:
    """So that files of an earlier version, which had fewer fields, stay readable."""
    spoilt = copy.deepcopy(document)
    del spoilt["run"]["header"]["interrupted"]
    put(file, spoilt)

    assert read_bundle(file).header.interrupted is False


def test_a_bundle_of_version_1_is_a_run_without_a_pair(file: Path, document: dict[str, Any]) -> None:
    earlier = copy.deepcopy(document)
    earlier["version"] = 1
    for name in ("paired_with", "paired_role", "aa_study", "confirms_run_id"):
        del earlier["run"]["header"][name]
    put(file, earlier)

    header = read_bundle(file).header
    assert header == a_run().header
    assert (header.paired_with, header.paired_role, header.aa_study) == (None, None, None)


def test_a_pair_travels_in_bundles(file: Path) -> None:
    other = str(uuid.uuid4())
    run = a_run(header={"paired_with": other, "paired_role": PairedRole.BASELINE, "aa_study": other})
    write_bundle(run, file)

    assert read_bundle(file) == run


def test_a_run_that_confirms_another_says_so_in_its_bundle(file: Path) -> None:
    run = a_run(number=1, header={"confirms_run_id": a_run().header.run_id})
    write_bundle(run, file)

    assert read_bundle(file) == run


def test_a_bundle_of_version_2_confirms_nothing(file: Path, document: dict[str, Any]) -> None:
    earlier = copy.deepcopy(document)
    earlier["version"] = 2
    del earlier["run"]["header"]["confirms_run_id"]
    put(file, earlier)

    assert read_bundle(file).header.confirms_run_id is None


Path_ = tuple[str | int, ...]


def at(document: Any, path: Path_) -> Any:
    for step in path:
        document = document[step]
    return document


HEADER: Path_ = ("run", "header")
MEASUREMENT: Path_ = ("run", "measurements", 0)
WINDOW: Path_ = (*MEASUREMENT, "windows", 1)
COMMIT: Path_ = ("run", "history", 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*WINDOW, "samples_ms", 3), 0.0, "windows[1] contradicts itself: sample 0.0 ms is not a duration"),
        ((*WINDOW, "samples_ms", 3), -1.0, "sample -1.0 ms"),
        ((*WINDOW, "samples_ms", 3), "0.25", "windows[1].samples_ms[3] is '0.25', and should be a number"),
        ((*WINDOW, "samples_ms", 3), True, "samples_ms[3] is true, and should be a number"),
        ((*WINDOW, "samples_ms", 3), None, "samples_ms[3] is null, and should be a number"),
        ((*WINDOW, "samples_ms", 3), [1.0], "samples_ms[3] is a list of 1"),
        ((*WINDOW, "samples_ms", 3), 10**400, "samples_ms[3] is a number too large"),
        ((*WINDOW, "samples_ms"), [], "30 exclusions for 0 samples"),
        ((*WINDOW, "samples_ms"), 0.25, "windows[1].samples_ms is 0.25, and should be a list"),
        ((*WINDOW, "sm_clock_mhz", 0), 1980.5, "sm_clock_mhz[0] is 1980.5, and should be a whole number"),
        ((*WINDOW, "throttle_reasons", 0), 2**63, "throttle_reasons[0] is a whole number that does not fit"),
        ((*WINDOW, "exclusions", 0), 1, "exclusions[0] is a whole number, and should be text"),
        ((*WINDOW, "telemetry"), [], "telemetry is a list of 0, and should be an object"),
        ((*WINDOW, "telemetry", "power_w"), {"value": 1, "error": "x"}, "a reading holds a value or"),
        ((*WINDOW, "started_at"), "yesterday", "started_at is 'yesterday', and should be an instant"),
        ((*WINDOW, "started_at"), "2026-03-02T09:00:00", "an instant without a time zone"),
        ((*WINDOW, "started_at"), 0, "started_at is a whole number, and should be text"),
        ((*WINDOW, "started_at"), "0001-01-01T00:00:00+23:00", "should be an instant"),
        ((*MEASUREMENT, "case", "parameters", "rows"), [1], "case.parameters.rows is a list of 1"),
        ((*MEASUREMENT, "case", "benchmark"), 7, "case.benchmark is a whole number"),
        ((*MEASUREMENT, "interval", "low"), 99.0, "interval contradicts itself"),
        ((*MEASUREMENT, "interval", "low"), None, "interval contradicts itself"),
        ((*MEASUREMENT, "interval", "status"), "great", "status is 'great', and should be one of ok"),
        ((*MEASUREMENT, "tier"), "S", "measurements[0].tier is 'S', and should be one of A, B, C"),
        ((*MEASUREMENT, "tier"), ["A"], "tier is a list of 1, and should be one of"),
        ((*MEASUREMENT, "kernels", 0, "grid"), [1, 2], "grid is a list of 2, and should be a list of 3"),
        ((*MEASUREMENT, "flops"), "many", "flops is 'many', and should be a number"),
        ((*MEASUREMENT,), None, "measurements[0] is null, and should be an object"),
        ((*HEADER, "commit_sha"), "abc", "commit_sha 'abc' is not a full commit id"),
        ((*HEADER, "merge_base"), "HEAD", "merge_base 'HEAD' is not a full commit id"),
        ((*HEADER, "run_id"), "../../etc/passwd", "the run id is no UUID in lower case: '../../etc/passwd'"),
        ((*HEADER, "run_id"), "x" * 500_000, "is no UUID"),
        ((*HEADER, "paired_with"), str(uuid.UUID(int=1)), "names the other run and its own role"),
        ((*HEADER, "paired_role"), "baseline", "names the other run and its own role"),
        ((*HEADER, "paired_role"), "judge", "should be one of candidate, baseline"),
        ((*HEADER, "aa_study"), "first", "aa_study is no UUID"),
        ((*HEADER, "confirms_run_id"), "first", "confirms_run_id is no UUID"),
        ((*HEADER, "confirms_run_id"), a_run().header.run_id, "confirms itself"),
        ((*HEADER, "gpu_name"), "x" * 1_000_001, "gpu_name is a text of 1000001 characters"),
        ((*HEADER, "gpu_name"), "\udcff", "half a surrogate pair"),
        ((*HEADER, "dirty"), 0, "dirty is a whole number, and should be true or false"),
        ((*HEADER, "dirty"), "no", "dirty is 'no'"),
        ((*HEADER, "context"), {str(i): {"value": i} for i in range(1001)}, "an object of 1001 names"),
        ((*COMMIT, "sha"), "A" * 40, "history[0] contradicts itself"),
        ((*COMMIT, "parents"), "none", "history[0].parents is 'none', and should be a list"),
        (("run", "failures", 0, "stage"), "lunch", "failures[0].stage is 'lunch'"),
        (("run", "history"), {}, "run.history is an object, and should be a list"),
        (("run",), [], "run is a list of 0, and should be an object"),
        (("format",), "tarball", "it is no run bundle"),
        (("version",), 4, "upgrade kernelwatch"),
        (("version",), "1", 'no whole number as "version"'),
        (("version",), True, 'no whole number as "version"'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_where_it_stands(
    file: Path, document: dict[str, Any], path: Path_, value: object, message: str
) -> None:
    spoilt = copy.deepcopy(document)
    at(spoilt, path[:-1])[path[-1]] = value
    put(file, spoilt)

    assert message in refusal(file)


@pytest.mark.parametrize(
    ("path", "name", "message"),
    [
        (WINDOW, "samples_mss", "windows[1] has a field 'samples_mss' .* did you mean 'samples_ms'"),
        (HEADER, "weather", "run.header has a field 'weather' .* made by a newer version"),
        ((), "signature", "has a field 'signature' that this version does not know"),
        (("run",), "__class__", "run has a field '__class__'"),
    ],
)
def test_an_unknown_field_is_refused(
    file: Path, document: dict[str, Any], path: Path_, name: str, message: str
) -> None:
    spoilt = copy.deepcopy(document)
    at(spoilt, path)[name] = 1
    put(file, spoilt)

    said = refusal(file)

    for part in message.split(" .* "):
        assert part in said


@pytest.mark.parametrize(
    "path", [(*WINDOW, "samples_ms"), (*HEADER, "gpu_uuid"), ("run", "measurements"), ("run",)]
)
def test_a_missing_field_is_named(file: Path, document: dict[str, Any], path: Path_) -> None:
    spoilt = copy.deepcopy(document)
    del at(spoilt, path[:-1])[path[-1]]
    put(file, spoilt)

    assert f"lacks the field '{path[-1]}'" in refusal(file)


def test_a_series_that_occurs_twice_is_refused(file: Path, document: dict[str, Any]) -> None:
    spoilt = copy.deepcopy(document)
    spoilt["run"]["measurements"] *= 2
    put(file, spoilt)

    assert "measures softmax[rows=1024] twice" in refusal(file)


def test_a_field_given_twice_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(b'{"format": "kernelwatch-run", "version": 1, "version": 1}'))

    assert "has the field 'version' twice" in refusal(file)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(file: Path, document: dict[str, Any], constant: str) -> None:
    text = json.dumps(document).replace('"flops": 42000000.0', f'"flops": {constant}')
    assert constant in text
    file.write_bytes(gzip.compress(text.encode()))

    assert f"holds {constant}" in refusal(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"null", "it is no run bundle"),
        (b"[]", "it is no run bundle"),
        (b'{"format": "kernelwatch-run"}', "version"),
        (b'{"format": "kernelwatch-run", "version": 1}', "lacks the field 'run'"),
        (b'{"format": "kernelwatch-run", "version": 1', "not JSON"),
        (b'{"format": "\xff"}', "not UTF-8 at byte 12"),
        (b'{"format": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 400_000, "nested too deeply"),
        (b"[" * 500_001, "values or 500000 lists and objects"),
        (b"[" + b"1," * 5_000_001 + b"1]", "more than 5000000 values"),
        (b"\x80\x04K\x01.", "not UTF-8"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_document_that_is_none_is_refused(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(gzip.compress(content))

    assert message in refusal(file)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda good: good[:-20], "ends too early"),
        (lambda good: good[: len(good) // 2], "ends too early"),
        (lambda good: good[:5], "ends too early"),
        (lambda good: good[:200] + bytes(20) + good[220:], "damaged"),
        (lambda good: good[:-8] + bytes(8), "damaged"),
        (lambda good: good + b"something else", "damaged"),
        (lambda _: b"plain text", "not a gzip file"),
        (lambda _: b"", "not JSON"),
    ],
)
def test_a_damaged_file_is_refused(file: Path, spoil: Callable[[bytes], bytes], message: str) -> None:
    write_bundle(a_run(), file)
    file.write_bytes(spoil(file.read_bytes()))

    assert message in refusal(file)


@pytest.mark.parametrize("name", ["absent", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "there is no such file" in refusal(tmp_path / name)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "there is no such file" in refusal(tmp_path / "pipe")


def test_a_file_above_the_limit_is_refused_unread(file: Path) -> None:
    write_bundle(a_run(), file)

    with pytest.raises(BundleInvalid, match=r"at most 0\.0 MiB are taken"):
        read_bundle(file, max_bytes=100)


def test_a_gzip_bomb_is_refused_in_bounded_memory(file: Path) -> None:
    """4 GiB of spaces, packed into 4 MiB, are read by a process that may only have 1 GiB."""
    file.write_bytes(gzip.compress(b" " * 2**26) * 64)
    assert file.stat().st_size < 2**23
    code = (
        "import sys, pathlib; from store.bundle import read_bundle; from store.errors import BundleInvalid\n"
        "try: read_bundle(pathlib.Path(sys.argv[1]))\n"
        "except BundleInvalid as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)),
    )

    assert "larger than 128 MiB" in done.stdout


def test_names_that_look_like_paths_or_sql_are_only_names(file: Path, database: Database) -> None:
    names = ("../../etc/passwd", "'; drop table runs; --", "\x1b[2J", "<script>alert(1)</script>")
    run = a_run(measurements=tuple(a_measurement(name, windows=(a_window(),)) for name in names))
    write_bundle(run, file)

    save_run(database, read_bundle(file))

    assert find_runs(database) == [run.header]
    assert sorted(path.name for path in file.parent.iterdir()) == sorted([file.name, database.path.name])
