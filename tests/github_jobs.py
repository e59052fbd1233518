"""A job of a workflow on GitHub: its environment, its event, and what it finds in artifacts."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from builders import a_failure, a_measurement, a_run, a_sha
from click.testing import CliRunner, Result
from fake_github import TOKEN, FakeGitHub, listening
from fake_github_answers import REPOSITORY, a_pull

from alerts.cli import alerts
from store.bundle import write_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from store.records import Run

HEAD = a_sha(7)


def slower(number: int = 0, **header: Any) -> Run:
    """Commit 7 after commit 6, 4 per cent slower, with a benchmark that failed."""
    return a_run(
        7,
        number=number,
        measurements=(a_measurement(median_ms=0.26, seed=700 + number),),
        failures=(a_failure(),),
        header={"merge_base": a_sha(6), "suites": ("suites",)} | header,
    )


@contextmanager
def a_workflow_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGitHub]:
    """GitHub, and the environment of a job that talks to it about pull request 7."""
    with listening(FakeGitHub()) as hub:
        hub.pulls[7] = a_pull(7, sha=HEAD)
        for name in ("KERNELWATCH_GITHUB_TOKEN", "KERNELWATCH_GITHUB_APP_ID", "KERNELWATCH_DASHBOARD"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("alerts.github.client._MOMENT_S", 0.0)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
        monkeypatch.setenv("GITHUB_RUN_ID", "99")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
        yield hub
    assert hub.violations == []


def an_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, payload: Any) -> None:
    """What has happened."""
    (tmp_path / "event.json").write_text(json.dumps(payload), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.setenv("GITHUB_EVENT_NAME", name)


def a_measuring_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **changes: Any) -> None:
    """A workflow run has ended that was to measure a fork's pull request."""
    run = {
        "id": 12,
        "name": "measure",
        "conclusion": "success",
        "head_sha": HEAD,
        "head_branch": "feature",
        "head_repository": {"owner": {"login": "example"}},
        "pull_requests": [],
    }
    an_event(monkeypatch, tmp_path, "workflow_run", {"workflow_run": run | changes})


def comment(store: str, *arguments: str) -> Result:
    """``alerts comment`` with these arguments."""
    return CliRunner().invoke(alerts, ["comment", "--store", store, *arguments])


def a_zip(folder: Path, *runs: Run, **files: bytes) -> bytes:
    """An artifact with bundles and other files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for index, run in enumerate(runs):
            write_bundle(run, folder / "run.kernelwatch.gz")
            archive.writestr(f"../../{index}.kernelwatch.gz", (folder / "run.kernelwatch.gz").read_bytes())
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()
