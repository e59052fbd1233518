"""The actions, and the workflows that adopters copy: pinned, linted, and deaf to hostile input."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from builders import a_run, a_sha
from test_docs import Shown, the_command, unknown_words

from store.bundle import read_bundle
from store.database import Database
from store.runs import save_run

ROOT = Path(__file__).parents[1]
ACTIONS = ROOT / ".github/actions"
EXAMPLES = sorted((ROOT / "docs/workflows").glob("*.yml"))
HOSTILE = "a b; touch pwned $(touch pwned) `touch pwned` ' \" * --flag"


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "path",
    [*EXAMPLES, *ACTIONS.rglob("action.yml"), *sorted((ROOT / ".github/workflows").glob("*.yml"))],
    ids=lambda p: f"{p.parent.parent.name}/{p.parent.name}/{p.name}",
)
def test_every_action_is_pinned_to_a_commit(path: Path) -> None:
    used = [line.strip() for line in lines_of(path) if re.match(r"\s*-?\s*uses:", line)]

    assert [line for line in used if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_zizmor_finds_nothing_in_actions_and_workflows() -> None:
    program = Path(sys.executable).with_name("zizmor")

    done = subprocess.run(
        [program, "--offline", "--quiet", ".github", *map(str, EXAMPLES)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout


def test_no_expression_of_github_stands_inside_a_script() -> None:
    """What stands in ``${{ }}`` becomes part of the program: it belongs into the environment."""
    inside = []
    for path in [*EXAMPLES, *ACTIONS.rglob("action.yml")]:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)run: (?:\|\n((?:\1 +.*\n|\n)*)|(.*)\n)", text, re.MULTILINE):
            inside += [path.name for part in match.groups()[1:] if part and "${{" in part]

    assert inside == []


def test_the_commenting_workflow_takes_no_code_and_runs_however_the_measuring_one_ended() -> None:
    comment, measure = (
        (ROOT / "docs/workflows" / name).read_text(encoding="utf-8")
        for name in ("comment.yml", "measure.yml")
    )

    assert " run:" not in comment
    assert "conclusion" not in comment
    assert "workflows: [measure]" in comment
    assert measure.startswith("# Measures")
    assert "\nname: measure\n" in measure
    assert "secrets." not in measure
    assert "write" not in measure.partition("jobs:")[2]


def test_thresholds_come_from_the_default_branch_and_never_from_the_pull_request() -> None:
    comment = (ROOT / "docs/workflows" / "comment.yml").read_text(encoding="utf-8")
    code = re.sub(r" #.*", "", comment)

    assert re.findall(r"uses: actions/checkout@.*\n +with:\n +ref: (.*)", code) == [
        "${{ github.event.repository.default_branch }}"
    ]
    assert code.count("actions/checkout@") == 1
    assert "path: trusted\n" in code
    assert "configuration: trusted\n" in code
    assert re.findall(r"^ +/(.*)$", code, re.MULTILINE) == ["kernelwatch.toml", "pyproject.toml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_commands_in_a_workflow_exist(path: Path) -> None:
    wrong = []
    for number, line in enumerate(lines_of(path), 1):
        match = re.match(r"\s*run: ((?:collect|store|alerts|dashboard) .*)", line)
        if match:
            shown = Shown(path.name, number, tuple(shlex.split(match[1])))
            wrong += [f"{shown}: {word}" for word in unknown_words(shown, the_command(shown.words[0]))]

    assert wrong == []


@pytest.fixture(name="prepared", scope="module")
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a paired measurement leaves in its store."""
    path = tmp_path_factory.mktemp("prepared") / "runs.duckdb"
    for commit in (6, 7):
        save_run(Database(path), a_run(commit))
    return path


@pytest.fixture(name="bin_folder")
def _bin_folder(tmp_path: Path, prepared: Path) -> Path:
    """Commands that write down their arguments, one a line; ``store`` then does what it is told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    then = {
        "alerts": 'printf "%s" "$PWD" >"$LOG.folder"',
        "collect": f'cp {shlex.quote(str(prepared))} "$4"',
        "store": f'exec {shlex.quote(str(Path(sys.executable).with_name("store")))} "$@"',
    }
    for name, what in then.items():
        script = f'#!/bin/sh\nprintf "{name}<%s>\\n" "$@" >>"$LOG"\n{what}\n'
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    return folder


def run_script(action: str, bin_folder: Path, **inputs: str) -> list[str]:
    done = script_run(action, bin_folder, **inputs)
    assert done.returncode == 0, done.stderr
    return (bin_folder.parent / "log").read_text(encoding="utf-8").splitlines()


def script_run(action: str, bin_folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    folder = bin_folder.parent
    return subprocess.run(
        ["/bin/bash", ACTIONS / action / "run.sh"],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "KW_BIN": str(bin_folder),
            "LOG": str(folder / "log"),
            "RUNNER_TEMP": str(folder),
            "GITHUB_OUTPUT": str(folder / "output"),
        }
        | inputs,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_measuring_keeps_every_run_and_evaluates_no_input(bin_folder: Path) -> None:
    inputs = {"KW_COMMIT": HOSTILE, "KW_BASE": "", "KW_PYTHON": HOSTILE, "KW_SUITE": f"{HOSTILE}\n\nb.py\n"}

    log = run_script("measure", bin_folder, **inputs)

    folder = bin_folder.parent
    asked = [line for line in log if line.startswith("collect")]
    assert asked == [
        f"collect<{word}>"
        for word in (
            "--commit", HOSTILE, "--store", f"{folder}/kernelwatch-runs/runs.duckdb",
            "--python", HOSTILE, "--suite", HOSTILE, "--suite", "b.py",
        )
    ]  # fmt: skip
    bundles = sorted((folder / "kernelwatch-runs/bundles").iterdir())
    assert {read_bundle(bundle).header.commit_sha for bundle in bundles} == {a_sha(6), a_sha(7)}
    assert (folder / "output").read_text().strip() == f"bundles={folder}/kernelwatch-runs/bundles"
    assert not (folder / "pwned").exists()


@pytest.mark.parametrize("stored", [True, False])
def test_where_measuring_fails_its_last_words_and_what_it_stored_are_kept(
    bin_folder: Path, prepared: Path, *, stored: bool
) -> None:
    copy = f'cp {shlex.quote(str(prepared))} "$4"; ' if stored else ""
    script = f"#!/bin/sh\n: >>\"$LOG\"\n{copy}echo measuring; echo 'Error: no GPU' >&2; exit 3\n"
    (bin_folder / "collect").write_text(script, encoding="utf-8")

    done = script_run("measure", bin_folder, KW_COMMIT="x", KW_BASE="", KW_PYTHON="", KW_SUITE="b.py")

    kept = bin_folder.parent / "kernelwatch-runs/bundles"
    assert (done.returncode, done.stderr) == (3, "Error: no GPU\n")
    assert done.stdout.startswith("measuring\n")
    assert (kept / "collect.txt").read_text() == "Error: no GPU\n"
    assert len(list(kept.glob("*.gz"))) == (2 if stored else 0)
    assert (bin_folder.parent / "output").read_text().strip() == f"bundles={kept}"


def test_a_base_is_compared_with_at_the_merge_base(bin_folder: Path) -> None:
    folder = bin_folder.parent

    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "fork point")
    fork_point = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "feature")
    git("commit", "-q", "--allow-empty", "-m", "feature")
    git("checkout", "-q", "main")
    git("commit", "-q", "--allow-empty", "-m", "main went on")

    log = run_script(
        "measure", bin_folder, KW_COMMIT="feature", KW_BASE="main", KW_PYTHON="", KW_SUITE="b.py"
    )

    assert "collect<--base>\ncollect<main>\ncollect<--against>\ncollect<" + fork_point in "\n".join(log)


def test_commenting_hands_each_input_on_as_one_word(bin_folder: Path) -> None:
    names = ("ARTIFACT", "STORE", "DASHBOARD", "PICTURES", "FAIL_ON")
    inputs = {f"KW_{name}": f"{name} {HOSTILE}" for name in names}

    inputs["KW_CONFIGURATION"] = ""
    log = run_script("comment", bin_folder, KW_CHECK="true", KW_ORDERS="true", KW_DRY_RUN="true", **inputs)

    folder = bin_folder.parent
    words = [line.removeprefix("alerts<").removesuffix(">") for line in log]
    assert words == [
        "comment", "--artifact", f"ARTIFACT {HOSTILE}", "--store", f"{folder}/STORE {HOSTILE}",
        "--dashboard", f"DASHBOARD {HOSTILE}", "--pictures", f"PICTURES {HOSTILE}",
        "--check", "--orders", "--fail-on", f"FAIL_ON {HOSTILE}", "--dry-run",
    ]  # fmt: skip
    shown = Shown("comment/run.sh", 1, ("alerts", *(w for w in words if HOSTILE not in w)))
    assert unknown_words(shown, the_command("alerts")) == []


def test_without_inputs_the_comment_judges_by_the_pairs_alone(bin_folder: Path) -> None:
    names = ("KW_CONFIGURATION", "KW_STORE", "KW_DASHBOARD", "KW_PICTURES", "KW_FAIL_ON")
    nothing = dict.fromkeys(names, "")
    off = dict.fromkeys(("KW_CHECK", "KW_ORDERS", "KW_DRY_RUN"), "false")

    log = run_script("comment", bin_folder, KW_ARTIFACT="kernelwatch", **nothing, **off)

    assert log[-1] == f"alerts<{bin_folder.parent}/kernelwatch-comment/no-store.duckdb>"
    assert len(log) == 5


def test_a_comment_is_made_where_its_configuration_is_or_where_none_is(bin_folder: Path) -> None:
    """The workspace of a self-hosted runner may hold what a pull request left there."""
    folder = bin_folder.parent
    (folder / "kernelwatch.toml").write_text("[judge]\nflag_effect = 0.9\n", encoding="utf-8")
    (folder / "trusted").mkdir()
    inputs = dict.fromkeys(("KW_STORE", "KW_DASHBOARD", "KW_PICTURES", "KW_FAIL_ON"), "")
    inputs |= dict.fromkeys(("KW_CHECK", "KW_ORDERS", "KW_DRY_RUN"), "false")

    where = []
    for configuration in ("", "trusted"):
        run_script("comment", bin_folder, KW_ARTIFACT="x", KW_CONFIGURATION=configuration, **inputs)
        where.append((folder / "log.folder").read_text())

    assert where == [f"{folder}/kernelwatch-comment", f"{folder}/trusted"]
    assert list((folder / "kernelwatch-comment").iterdir()) == []


@pytest.mark.parametrize(
    "script", sorted(ACTIONS.rglob("*.sh")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_a_script_of_an_action_stops_at_the_first_error(script: Path) -> None:
    assert "set -euo pipefail" in lines_of(script)
    assert os.access(script, os.X_OK)
