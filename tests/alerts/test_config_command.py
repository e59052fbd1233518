"""The configuration file at the command line: what it does to judging, and how it is shown."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run, a_sha
from click.testing import CliRunner, Result

from alerts.cli import alerts
from store.database import Database
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

LOOSE = '[judge]\nconfirm_effect = 0.02\n[[judge.override]]\nbenchmarks = ["soft*"]\nflag_effect = 0.2\n'


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six commits and a seventh that is 4 per cent slower; copied, never changed."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    slower = a_measurement(median_ms=0.26, seed=700)
    save_run(Database(path), a_run(7, measurements=(slower,), header={"merge_base": a_sha(6)}))
    return path


@pytest.fixture
def checkout(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the store in it, where the commands are run."""
    shutil.copy(history, tmp_path / "kernelwatch.duckdb")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, list(arguments))


def configure(folder: Path, text: str = LOOSE, name: str = "kernelwatch.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def shown_policy(*arguments: str) -> dict[str, Any]:
    result = run("config", "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_the_nearest_file_decides_and_the_stored_verdict_says_so(checkout: Path) -> None:
    configure(checkout)

    result = run("judge")

    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 unchanged")
    (verdict,) = load_verdicts(Database(checkout / "kernelwatch.duckdb"))
    assert verdict.message.endswith(
        "; judged by confirm_effect 0.02 instead of 0.01, flag_effect 0.2 instead of 0"
    )


def test_the_json_names_what_is_not_the_default(checkout: Path) -> None:
    told = json.loads(run("judge", "--format", "json").output)
    assert [item["policy"] for item in told["verdicts"]] == [{}]

    configure(checkout)

    (item,) = json.loads(run("judge", "--format", "json").output)["verdicts"]
    assert item["policy"] == {"confirm_effect": 0.02, "flag_effect": 0.2}


@pytest.mark.parametrize(
    "command",
    [
        ["judge"],
        ["compare", a_sha(6), a_sha(7)],
        ["comment", "--dry-run"],
    ],
    ids=lambda words: words[0],
)
def test_a_named_file_holds_over_what_a_checkout_brings(checkout: Path, command: list[str]) -> None:
    configure(checkout)
    strict = configure(checkout, "", "strict.toml")

    assert "1 regressed" not in run(*command).output
    assert "1 regressed" in run(*command, "--config", str(strict)).output


def test_the_environment_names_a_file_too(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWATCH_CONFIG", str(configure(checkout, name="elsewhere.toml")))

    assert run("judge").output.startswith("1 unchanged")


@pytest.mark.parametrize("command", [["judge"], ["steps"], ["config"], ["comment", "--dry-run"]])
def test_a_wrong_file_is_a_usage_error_and_judges_nothing(checkout: Path, command: list[str]) -> None:
    configure(checkout, "[judge]\nconfirm_efect = 0.02\n")

    result = run(*command)

    assert result.exit_code == 2
    assert "unknown key 'confirm_efect': did you mean confirm_effect?" in result.output
    assert load_verdicts(Database(checkout / "kernelwatch.duckdb")) == []


def test_every_value_is_shown_with_where_it_comes_from(checkout: Path) -> None:
    file = configure(checkout)

    found = shown_policy()

    assert found["file"] == str(file)
    assert found["general"]["confirm_effect"] == {
        "value": 0.02,
        "default": 0.01,
        "from": f"{file}, [judge]",
    }
    assert found["general"]["pool_size"] == {"value": 20, "default": 20, "from": "default"}
    (softmax,) = found["benchmarks"]
    assert softmax["benchmark"] == "softmax[rows=1024]"
    assert (softmax["values"]["flag_effect"], softmax["values"]["confirm_effect"]) == (0.2, 0.02)
    assert softmax["overrides"] == {"flag_effect": 1}


def test_the_text_shows_the_same(checkout: Path) -> None:
    file = configure(checkout)

    lines = run("config").output.splitlines()

    assert lines[0] == f"Configuration: {file}"
    assert ["confirm_effect", "0.02", "0.01"] in [line.split()[:3] for line in lines]
    assert "[[judge.override]] number 1, for soft*: flag_effect 0.2" in lines
    assert any(line.startswith("softmax[rows=1024]  flag_effect 0.2 (override 1)") for line in lines)
    assert "0 cases of the store follow the general policy." in lines


def test_without_a_file_the_defaults_are_shown_as_such(checkout: Path) -> None:
    output = run("config").output

    assert output.startswith("No configuration file was found")
    assert {entry["from"] for entry in shown_policy()["general"].values()} == {"default"}
    assert "1 case of the store follows the general policy." in output
    assert checkout.is_dir()


def test_a_glob_that_matches_nothing_known_is_pointed_out(checkout: Path) -> None:
    configure(checkout, '[[judge.override]]\nbenchmarks = ["sofmax", "soft*"]\n')

    assert shown_policy()["unmatched"] == [
        "override 1: sofmax matches nothing in the store, which has 1 benchmark (nearest: softmax)"
    ]
    assert "Note: override 1: sofmax matches nothing" in run("config").output
    assert "Note: override 1: sofmax matches nothing" in run("judge").stderr


def test_a_label_that_was_taken_for_a_glob_is_shown_as_it_has_to_be_written(checkout: Path) -> None:
    configure(checkout, '[[judge.override]]\nbenchmarks = ["softmax[rows=1024]"]\n')

    (said,) = shown_policy()["unmatched"]

    assert said.endswith("(a [ of a label is written [[]: softmax[[]rows=1024])")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("pool_minimum = 30", "[judge], override 1: pool_minimum 30 is more than pool_size 20"),
        (
            "reach_runs = 10",
            "[[judge.override]] number 1: reach_runs holds for whole runs, not for some benchmarks: write it",
        ),
        ("reach_run = 10", "[[judge.override]] number 1: unknown key 'reach_run'"),
    ],
)
def test_a_mistake_in_an_override_is_named_with_its_file(checkout: Path, table: str, said: str) -> None:
    file = configure(checkout, f'[[judge.override]]\nbenchmarks = ["softmax"]\n{table}\n')

    result = run("judge")

    assert result.exit_code == 2
    assert f"{file}, {said}" in result.output


def test_a_policy_is_shown_without_a_store(checkout: Path) -> None:
    configure(checkout)
    (checkout / "kernelwatch.duckdb").unlink()

    result = run("config")

    assert result.exit_code == 0
    assert "There is no store to take benchmarks from" in result.output
    assert shown_policy()["benchmarks"] == []
