"""In how many paired runs is about one percent more work seen, and how many call the same code different?

Needs an NVIDIA GPU. Makes a repository of three commits in a temporary folder: the calls of
``planted_suite.py``, the same again, and the same with more work. Then it runs ``collect --against``
several times for each, and counts the verdicts:

    python tests/bench/bench_planted_pairs.py [--same N] [--more N] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from store.database import Database
from store.records import BaselineKind, Outcome
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from store.records import Verdict

PLANTED = Path(__file__).with_name("planted_suite.py")
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false")


def make_repository(folder: Path) -> None:
    """Commits ``HEAD~2`` and ``HEAD~1`` with the plain calls and ``HEAD`` with more work in each."""
    suite = folder / "planted_suite.py"
    for more, subject in ((0, "Plain"), (0, "The same again"), (1, "One percent more work")):
        source = PLANTED.read_text(encoding="utf-8").replace('"more": [0, 1]', '"more": ["here"]')
        suite.write_text(f"{source.replace('(more: int)', '(more: str)')}\n", encoding="utf-8")
        text = suite.read_text(encoding="utf-8").replace("* more", f"* {more}")
        suite.write_text(f"{text}\n# {subject}\n", encoding="utf-8")
        if not (folder / ".git").exists():
            subprocess.run([*GIT, "init", "--quiet"], cwd=folder, check=True)
        subprocess.run([*GIT, "add", "."], cwd=folder, check=True)
        subprocess.run([*GIT, "commit", "--quiet", "-m", subject], cwd=folder, check=True)


def measure(folder: Path, store: Path, commit: str, against: str) -> None:
    """One paired run, kept in the store."""
    command = [sys.executable, "-P", "-m", "collector", "--repo", str(folder), "--suite", "planted_suite.py"]
    command += ["--commit", commit, "--against", against, "--store", str(store)]
    # What is flagged is not to be measured again: each verdict counts by itself.
    environment = {**os.environ, "KERNELWATCH_COLLECT_CONFIRM": "0"}
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def report(title: str, store: Path) -> None:
    """A line for each call: verdicts, regressed, improved, median effect."""
    by_call: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in load_verdicts(Database(str(store))):
        if verdict.baseline_kind is BaselineKind.PAIRED:
            by_call[verdict.series.case.benchmark].append(verdict)
    print(f"{title:24} {'pairs':>6} {'slower':>7} {'faster':>7} {'median effect':>14}")
    for call, verdicts in sorted(by_call.items()):
        slower = sum(verdict.outcome is Outcome.REGRESSED for verdict in verdicts)
        faster = sum(verdict.outcome is Outcome.IMPROVED for verdict in verdicts)
        effect = statistics.median(verdict.effect or 0.0 for verdict in verdicts)
        print(f"{call:24} {len(verdicts):6} {slower:7} {faster:7} {effect:+14.2%}")


def main() -> None:
    """Measure both kinds of pairs and print what was decided about them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--same", type=int, default=5, help="paired runs of the same code")
    parser.add_argument("--more", type=int, default=5, help="paired runs with more work in one half")
    parser.add_argument("--keep", type=Path, help="folder for the two stores")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, stores = Path(temporary, "code"), arguments.keep or Path(temporary)
        folder.mkdir()
        make_repository(folder)
        for name, runs, commit, against in (
            ("same code", arguments.same, "HEAD~1", "HEAD~2"),
            ("more work", arguments.more, "HEAD", "HEAD~1"),
        ):
            store = stores / f"{name.replace(' ', '-')}.duckdb"
            for _ in range(runs):
                measure(folder, store, commit, against)
            if runs:
                report(name, store)


if __name__ == "__main__":
    main()
