"""Which file holds, and what no file may hold: with real files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from store import configuration
from store.configuration import Configuration, load_configuration
from store.errors import ConfigurationInvalid


@dataclass(frozen=True, kw_only=True)
class ATable:
    passes: int = 8


def own(folder: Path, text: str = "[collect]\npasses = 3\n", name: str = "kernelwatch.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def shared(folder: Path, text: str = "[tool.kernelwatch.collect]\npasses = 4\n") -> Path:
    return own(folder, text, "pyproject.toml")


def a_repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    return folder


def passes(found: Configuration) -> int:
    return found.read("collect", ATable).passes


def refusal(start: Path, file: Path | None = None) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        load_configuration(file, start=start)
    return str(caught.value)


def test_without_a_file_everything_is_at_its_default(tmp_path: Path) -> None:
    found = load_configuration(None, start=a_repository(tmp_path))

    assert found == Configuration()
    assert passes(found) == 8


def test_a_file_of_its_own_holds(tmp_path: Path) -> None:
    file = own(a_repository(tmp_path))

    found = load_configuration(None, start=tmp_path)

    assert (found.file, passes(found)) == (file, 3)


def test_a_table_of_the_project_file_holds_and_is_named_in_full(tmp_path: Path) -> None:
    file = shared(a_repository(tmp_path), "[tool.kernelwatch.collect]\npases = 4\n")

    with pytest.raises(ConfigurationInvalid) as caught:
        passes(load_configuration(None, start=tmp_path))

    assert f"{file}, [tool.kernelwatch.collect]: unknown key 'pases'" in str(caught.value)


def test_a_project_file_without_the_table_is_passed_over(tmp_path: Path) -> None:
    own(a_repository(tmp_path))
    shared(tmp_path, "[project]\nname = 'x'\n")
    shared(tmp_path / "src", "[tool.ruff]\n")

    assert passes(load_configuration(None, start=tmp_path / "src")) == 3


@pytest.mark.parametrize("name", ["kernelwach", "kernel-watch", "KernelWatch"])
def test_a_table_of_the_project_file_that_is_nearly_ours_is_refused(tmp_path: Path, name: str) -> None:
    shared(a_repository(tmp_path), f"[tool.{name}.collect]\npasses = 3\n")

    with pytest.raises(ConfigurationInvalid) as caught:
        load_configuration(None, start=tmp_path)

    assert f"unknown table [tool.{name}]: did you mean [tool.kernelwatch]?" in str(caught.value)


def test_the_nearest_file_holds_alone(tmp_path: Path) -> None:
    own(a_repository(tmp_path), "[collect]\npasses = 3\n[judge]\n")
    shared(tmp_path / "kernels")

    found = load_configuration(None, start=tmp_path / "kernels")

    assert passes(found) == 4
    assert "judge" not in found.tables


def test_nothing_above_the_repository_is_looked_at(tmp_path: Path) -> None:
    own(tmp_path)

    assert load_configuration(None, start=a_repository(tmp_path / "repository")).file is None


def test_a_worktree_ends_the_search_too(tmp_path: Path) -> None:
    own(tmp_path)
    own(tmp_path / "tree", "gitdir: elsewhere\n", ".git")

    assert load_configuration(None, start=tmp_path / "tree").file is None


def test_two_files_in_one_folder_that_both_configure_are_refused(tmp_path: Path) -> None:
    own(a_repository(tmp_path))
    shared(tmp_path)

    assert "keep one, or name it with --config" in refusal(tmp_path)


def test_a_named_file_holds_whatever_lies_near(tmp_path: Path) -> None:
    own(a_repository(tmp_path))
    named = own(tmp_path / "ci", "[collect]\npasses = 5\n", "nightly.toml")

    assert passes(load_configuration(named, start=tmp_path)) == 5


def test_the_null_device_is_a_file_without_tables(tmp_path: Path) -> None:
    own(a_repository(tmp_path))

    assert passes(load_configuration(Path(os.devnull), start=tmp_path)) == 8


def test_a_named_project_file_without_the_table_is_refused(tmp_path: Path) -> None:
    named = shared(tmp_path, "[project]\nname = 'x'\n")

    assert f"{named} has no table [tool.kernelwatch]" in refusal(tmp_path, named)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[judgee]\n", "unknown table 'judgee': did you mean judge? Known: "),
        ("passes = 3\n", "unknown key outside of any table, 'passes'"),
        ("collect = 3\n", "collect is no table: write [collect] and its keys below"),
        ("[[collect]]\n", "collect is no table"),
        ("[tool.kernelwatch.collect]\n", "in kernelwatch.toml tables stand at the top: write [judge]"),
        ("[collect\n", "is no TOML: "),
        ("[collect]\npasses = 3\npasses = 4\n", "is no TOML: "),
    ],
)
def test_a_file_that_means_nothing_is_refused_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    file = own(a_repository(tmp_path), text)

    found = refusal(tmp_path)

    assert str(file) in found
    assert said in found


def test_a_table_of_the_project_file_that_is_none_is_refused(tmp_path: Path) -> None:
    shared(a_repository(tmp_path), "[tool]\nkernelwatch = 3\n")

    assert "tool.kernelwatch is no table" in refusal(tmp_path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (a_repository(tmp_path) / "kernelwatch.toml").write_bytes(b'[collect]\nbase = "\xe9"\n')

    assert "is not UTF-8 (byte 18): save it as UTF-8" in refusal(tmp_path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(tmp_path, tmp_path / "gone.toml")


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter2"',
        'api_key = "hunter2"',
        'github-token = "hunter2"',
        'list = [{secret = "hunter2"}]',
        '[collect.server]\nPassword = "hunter2"',
        'url = "postgres://me:hunter2@host/base"',
        'urls = ["https://me:hunter2@host/"]',
    ],
)
def test_a_secret_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    own(a_repository(tmp_path), f"[collect]\n{line}\n")

    found = refusal(tmp_path)

    assert "looks like a secret" in found
    assert "hunter2" not in found


def test_the_name_of_the_variable_that_holds_a_secret_is_none(tmp_path: Path) -> None:
    own(a_repository(tmp_path), '[collect]\npassword_variable = "MAIL_PASSWORD"\n')

    assert load_configuration(None, start=tmp_path).file is not None


def test_a_secret_of_a_known_table_names_its_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(configuration.TABLES, "post", {"password": "KERNELWATCH_POST_PASSWORD"})
    own(a_repository(tmp_path), '[[post.list]]\npassword = "hunter2"\n')

    found = refusal(tmp_path)

    assert "[[post.list]] number 1: password looks like a secret" in found
    assert "set the environment variable KERNELWATCH_POST_PASSWORD" in found
