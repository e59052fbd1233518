"""Defaults of ``collect`` from a file: the command line beats the environment, which beats the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
import pytest
from collect_command import Project
from real_workers import benchmarks
from suite_files import a_suite_file

from collector.cli import collect, list_command
from collector.options import merged, plan_of
from collector.tiers import TierRule
from store.configuration import CONFIG_VARIABLE
from store.records import ClockRegime
from store.runs import find_runs
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from trees import Tree

    from collector.run import Plan

FILE = """
[collect]
suites = ["bench_a.py"]
passes = 12
timer = "wall"
base = "develop"
clocks = "locked"
clock_mhz = 1500
[tier]
samples_min = 20
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kernelwatch.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*arguments: str) -> Plan:
    with collect.make_context("collect", list(arguments)) as context:
        return plan_of(context.params)


def refusal(*arguments: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        planned(*arguments)
    return caught.value.message


@pytest.mark.usefixtures("checkout")
def test_the_file_stands_for_every_option_that_is_not_given() -> None:
    plan = planned()

    assert (plan.suites, plan.passes, plan.timer, plan.base_ref) == (("bench_a.py",), 12, "wall", "develop")
    assert (plan.clocks, plan.clock_mhz) == (ClockRegime.LOCKED, 1500)
    assert plan.tiers == TierRule(samples_min=20)


@pytest.mark.usefixtures("checkout")
def test_the_command_line_beats_the_environment_and_the_environment_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNELWATCH_COLLECT_PASSES", "9")
    monkeypatch.setenv("KERNELWATCH_COLLECT_TIMER", "events")

    plan = planned("--passes", "5", "--suite", "bench_b.py", "--base", "main")

    assert (plan.passes, plan.timer, plan.suites, plan.base_ref) == (5, "events", ("bench_b.py",), "main")


@pytest.mark.usefixtures("checkout")
def test_a_value_that_is_given_and_happens_to_be_the_default_still_beats_the_file() -> None:
    assert planned("--clocks", "held").clocks is ClockRegime.HELD


@pytest.mark.usefixtures("checkout")
def test_a_quick_run_is_quick_whatever_the_file_says() -> None:
    assert planned("--quick").passes == 3


@pytest.mark.usefixtures("checkout")
def test_the_clock_of_the_file_belongs_to_the_regime_of_the_file() -> None:
    assert planned("--clocks", "free").clock_mhz is None
    assert planned("--clock-mhz", "1200").clocks is ClockRegime.LOCKED


@pytest.mark.usefixtures("checkout")
def test_an_option_of_collect_given_before_a_subcommand_beats_the_file_too() -> None:
    with collect.make_context("collect", ["--suite", "bench_b.py", "list"]) as group:
        group.obj = group.params
        with list_command.make_context("list", [], parent=group) as context:
            plan = plan_of(merged(context, context.params))

    assert (plan.suites, plan.timer) == (("bench_b.py",), "wall")


def test_suites_are_found_from_the_folder_of_the_file(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "kernels").mkdir()
    monkeypatch.chdir(checkout / "kernels")

    assert planned().suites == ("../bench_a.py",)


def test_the_file_is_looked_for_where_the_code_is(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert planned("--repo", str(checkout)).passes == 12
    assert planned().passes == 8


def test_a_named_file_holds_instead(checkout: Path) -> None:
    other = checkout / "nightly.toml"
    other.write_text("[collect]\npasses = 20\n", encoding="utf-8")

    assert planned("--config", str(other)).passes == 20
    assert planned("--config", os.devnull).passes == 8


def test_a_wrong_file_is_a_usage_error(checkout: Path) -> None:
    (checkout / "kernelwatch.toml").write_text("[collect]\npases = 3\n", encoding="utf-8")
    assert "[collect]: unknown key 'pases': did you mean passes?" in refusal()

    (checkout / "kernelwatch.toml").write_text("[tier]\nwindows_min = 3\n", encoding="utf-8")
    assert "[tier]: windows_min is 3: give a whole number from 6 to 1000 windows" in refusal()


def test_a_clock_without_a_regime_for_it_is_a_usage_error(checkout: Path) -> None:
    (checkout / "kernelwatch.toml").write_text("[collect]\nclock_mhz = 1500\n", encoding="utf-8")

    assert "--clock-mhz has no meaning with --clocks held" in refusal()


def test_the_file_is_named_to_what_is_started_and_to_nothing_afterwards(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)

    with collect.make_context("collect", []) as context:
        plan_of(context.params)
        assert os.environ[CONFIG_VARIABLE] == str(checkout / "kernelwatch.toml")

    assert CONFIG_VARIABLE not in os.environ


def test_a_run_is_measured_and_judged_by_the_file_that_is_named(tree: Tree, bare_python: str) -> None:
    a_suite_file(tree.path, benchmarks("x"))
    tree.git("add", "-A")
    tree.commit("Measure x")
    outside = tree.path.parent / "ci.toml"
    outside.write_text(
        '[collect]\npasses = 3\n[judge]\nminimum_tier = "C"\n[tier]\nsamples_min = 20\n', encoding="utf-8"
    )
    project = Project(tree.path, bare_python)

    done = project.collect("--config", str(outside))

    assert done.returncode == 0, done.stderr
    (run,) = find_runs(project.store())
    assert run.passes == 3
    (verdict,) = load_verdicts(project.store())
    assert verdict.reason == "no-baseline"  # and not that the tier is too low
    assert verdict.message.endswith("; judged by minimum_tier C instead of B")
