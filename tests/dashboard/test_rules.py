"""The pages go by the configuration that the commands would find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import a_line_of_commits, a_run, a_sha
from pages import text_of

from store.database import Database
from store.records import GitTag
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage

    from store.records import Run

NIGHTLY = '[judge]\nrelease_tags = ["nightly-*"]\n'
MISTAKE = '[judge]\nrelease_tag = ["nightly-*"]\n'


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, which the server is started in; nothing above it is looked at."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELWATCH_CONFIG", raising=False)
    return tmp_path


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Database:
    """Two runs, the second on a commit of a tag that is a release where somebody says so."""
    database = Database(tmp_path / "tagged.duckdb")
    for number in (1, 2):
        save_run(database, tagged_run(number))
    return database


def tagged_run(number: int) -> Run:
    tags = (GitTag(name="nightly-2", commit_sha=a_sha(2)), GitTag(name="v1.0", commit_sha=a_sha(1)))
    return a_run(number, git_tags=tags, history=a_line_of_commits(number))


def trend_of(store: Database, open_page: OpenPage) -> str:
    run = tagged_run(2)
    app = open_page(store.url, "trends", series=run.series_key(run.measurements[0]).id)
    assert not app.exception
    return text_of(app).replace("\\", "")


def test_releases_are_the_tags_that_the_nearest_file_names(
    project: Path, store: Database, open_page: OpenPage
) -> None:
    by_default = trend_of(store, open_page)
    (project / "kernelwatch.toml").write_text(NIGHTLY)
    configured = trend_of(store, open_page)

    assert ("release v1.0" in by_default, "release nightly-2" in by_default) == (True, False)
    assert ("release v1.0" in configured, "release nightly-2" in configured) == (False, True)


def test_the_variable_of_the_commands_names_the_file(
    project: Path, store: Database, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kernelwatch.toml").write_text(MISTAKE)
    (project / "ci.toml").write_text(NIGHTLY)
    monkeypatch.setenv("KERNELWATCH_CONFIG", "ci.toml")

    assert "release nightly-2" in trend_of(store, open_page)


def test_a_mistake_costs_a_trend_its_releases_alone(
    project: Path, store: Database, open_page: OpenPage
) -> None:
    (project / "kernelwatch.toml").write_text(MISTAKE)

    page = trend_of(store, open_page)

    assert "Releases are not marked" in page
    assert "unknown key 'release_tag'" in page
    assert "The numbers of the chart" in page
    assert "release v1.0" not in page


def test_changes_since_a_release_are_not_shown_with_a_mistake(
    project: Path, store: Database, open_page: OpenPage
) -> None:
    (project / "kernelwatch.toml").write_text(MISTAKE)

    app = open_page(store.url, since="release")

    assert not app.exception
    assert [header.value for header in app.header] == ["The configuration holds a mistake"]
    said = app.error[0].value.replace("\\", "")
    assert "kernelwatch.toml" in said
    assert "unknown key 'release_tag'" in said
