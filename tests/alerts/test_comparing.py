"""Two commits, or two runs, side by side, from a real store and a real repository."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_commit, a_header, a_measurement, a_run, a_sha

from alerts.compare import compare
from alerts.errors import NothingToJudge, RevisionUnknown
from store.database import Database
from store.records import BaselineKind, Case, Outcome, Reason, Standing, Tier
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.judge import RunJudgement

A, B = 0xAAAA, 0xBBBB


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "two.duckdb")


def measure(database: Database, commit: int, *, number: int = 0, ms: float = 0.25, **changes: Any) -> str:
    header = changes.pop("header", {})
    fields: dict[str, Any] = {
        "measurements": (a_measurement(median_ms=ms, seed=commit + number),),
        "history": (a_commit(commit, parents=()),),
        "header": header,
    }
    run = a_run(commit, number=number, **(fields | changes))
    save_run(database, run)
    return run.header.run_id


def compared(database: Database, tmp_path: Path, **options: Any) -> RunJudgement:
    return compare(database, a_sha(A), a_sha(B), checkout=tmp_path, **options)


def test_the_newest_run_of_each_commit_is_compared(database: Database, tmp_path: Path) -> None:
    measure(database, A, ms=0.5)
    newest = measure(database, A, number=1)
    measure(database, B, ms=0.26)

    (verdict,) = compared(database, tmp_path).verdicts

    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.standing is Standing.FLAGGED
    assert verdict.baseline_kind is BaselineKind.SINGLE
    assert verdict.baseline_run_ids == (newest,)


def test_six_runs_of_a_commit_make_a_pool_and_two_sessions_confirm(
    database: Database, tmp_path: Path
) -> None:
    for number in range(6):
        measure(database, A, number=number)
    for number in range(2):
        measure(database, B, number=number, ms=0.26)

    judgement = compared(database, tmp_path)

    assert judgement.verdicts[0].baseline_kind is BaselineKind.POOL
    assert judgement.verdicts[0].standing is Standing.CONFIRMED
    assert judgement.has_confirmed_regression


def test_uncommitted_changes_are_compared_only_when_their_run_is_named(
    database: Database, tmp_path: Path
) -> None:
    clean = measure(database, A)
    measure(database, A, number=1, ms=0.5, header={"dirty": True})
    dirty = measure(database, B, ms=0.26, header={"dirty": True})
    measure(database, B, number=1)

    by_commit = compared(database, tmp_path)
    by_run = compare(database, clean, dirty, checkout=tmp_path)

    assert by_commit.verdicts[0].outcome is Outcome.UNCHANGED
    assert by_run.verdicts[0].outcome is Outcome.REGRESSED
    assert "uncommitted changes" in by_run.verdicts[0].message


def test_of_several_gpus_the_candidates_newest_is_taken_unless_one_is_asked_for(
    database: Database, tmp_path: Path
) -> None:
    for number, gpu in enumerate(("GPU-one", "GPU-two")):
        measure(database, A, number=number, header={"gpu_uuid": gpu})
        measure(database, B, number=number, header={"gpu_uuid": gpu})

    assert compared(database, tmp_path).header.gpu_uuid == "GPU-two"
    assert compared(database, tmp_path, gpu="GPU-o").header.gpu_uuid == "GPU-one"


def test_commits_without_a_common_gpu_are_an_error_that_names_the_gpus(
    database: Database, tmp_path: Path
) -> None:
    for number in range(2):
        measure(database, A, number=number, header={"gpu_uuid": "GPU-one"})
        measure(database, B, number=number, header={"gpu_uuid": "GPU-two"})

    with pytest.raises(NothingToJudge, match="measured on GPU-one, the candidate on GPU-two"):
        compared(database, tmp_path)


def test_two_runs_on_different_gpus_are_inconclusive(database: Database, tmp_path: Path) -> None:
    one = measure(database, A, header={"gpu_uuid": "GPU-one"})
    two = measure(database, B, header={"gpu_uuid": "GPU-two"})

    (verdict,) = compare(database, one, two, checkout=tmp_path).verdicts

    assert verdict.reason is Reason.OTHER_GPU


def test_a_baseline_of_tier_c_is_inconclusive(database: Database, tmp_path: Path) -> None:
    measure(database, A, measurements=(a_measurement(tier=Tier.C),))
    measure(database, B)

    assert compared(database, tmp_path).verdicts[0].reason is Reason.BASELINE_TIER_TOO_LOW


def test_what_one_side_lacks_is_named(database: Database, tmp_path: Path) -> None:
    measure(database, A, measurements=(a_measurement("gone"), a_measurement()))
    measure(database, B, measurements=(a_measurement("young"), a_measurement()))

    judgement = compared(database, tmp_path)

    assert judgement.missing == (Case.of("gone", {"rows": 1024}),)
    assert [v.reason for v in judgement.verdicts] == [Reason.INTERVALS_OVERLAP, Reason.NEW_BENCHMARK]


def test_a_prefix_of_two_commits_is_an_error(database: Database, tmp_path: Path) -> None:
    measure(database, A)
    measure(database, B)

    with pytest.raises(RevisionUnknown, match="0000 is the beginning of 2 commits: give more digits"):
        compare(database, "0000", a_sha(B), checkout=tmp_path)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "First")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Second")
    return folder


def test_names_that_git_knows_are_looked_up_in_the_checkout(database: Database, checkout: Path) -> None:
    for number, name in enumerate(("main~1", "main")):
        sha = git(checkout, "rev-parse", name)
        header = {"commit_sha": sha, "merge_base": sha}
        measure(database, A + number, history=(a_commit(A, sha=sha, parents=()),), header=header)

    judgement = compare(database, "main~1", "main", checkout=checkout)

    assert judgement.header.commit_sha == git(checkout, "rev-parse", "main")
    assert judgement.verdicts[0].outcome is Outcome.UNCHANGED


def test_a_commit_that_was_not_measured_asks_for_it(database: Database, checkout: Path) -> None:
    measure(database, A)

    with pytest.raises(NothingToJudge, match="which was not measured: run `collect --commit"):
        compare(database, a_sha(A), "main", checkout=checkout)


def test_a_word_that_names_nothing_is_an_error_with_what_was_tried(
    database: Database, checkout: Path
) -> None:
    measure(database, A)

    with pytest.raises(RevisionUnknown, match=r"'nonsense' names no run in .* and no commit of "):
        compare(database, a_sha(A), "nonsense", checkout=checkout)


def test_a_run_is_found_by_the_beginning_of_its_id(database: Database, tmp_path: Path) -> None:
    measure(database, A)
    measure(database, B)
    prefix = a_header(B).run_id[:10]

    assert compare(database, a_sha(A), prefix, checkout=tmp_path).header == a_header(B)
