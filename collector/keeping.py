"""Where a run goes once it is measured: bundle, store and judge, and never nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from store.bundle import BUNDLE_SUFFIX, write_bundle
from store.database import DEFAULT_URL, Database
from store.errors import StoreError
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.records import Run, Verdict

_JUDGE_LIMIT_S = 300
_JUDGED = (0, 3)  # exit codes of `alerts judge`: 3 where no verdict was possible


@dataclass(frozen=True)
class Kept:
    """What became of a run.

    Attributes:
        verdicts: of the run; None where it was not judged.
        unanswered: what the judge has no answer to, in counts such as ``1 failed``; or None.
        problem: what could not be done as asked, and where the run lies instead; or None.
    """

    verdicts: list[Verdict] | None = None
    unanswered: str | None = None
    problem: str | None = None


def keep(
    run: Run, *, output: Path | None, url: str | None, say: Callable[[str], None], judged: bool = True
) -> Kept:
    """Write the bundle and the store as asked, and have the run judged.

    Args:
        run: what was measured.
        output: where a bundle shall lie, or None.
        url: the store; None means the default one, or none at all where there is a bundle.
        say: told what was done.
        judged: False for a run whose ancestors are still to be measured; see ``judge_stored``.

    Raises:
        StoreError: the run could be kept nowhere.
    """
    if output is not None:
        try:
            write_bundle(run, output)
        except StoreError as error:
            return _rescued(run, error)
        say(f"wrote {output}")
        if url is None:
            return Kept()
    try:
        database = Database(url or DEFAULT_URL)
        save_run(database, run)
    except StoreError as error:
        return _rescued(run, error, bundle=output)
    say(f"stored run {run.header.run_id} in {database.url}")
    return judge_stored(run.header.run_id, database) if judged else Kept()


def judge_stored(run_id: str, database: Database) -> Kept:
    """Have a run of the store judged; its verdicts, or what stood in their way."""
    problem, unanswered = _judge(run_id, database.url)
    if problem is not None:
        return Kept(problem=f"the run is stored but could not be judged: {problem}")
    try:
        return Kept(verdicts=load_verdicts(database, run_ids=[run_id]), unanswered=unanswered)
    except StoreError as error:
        return Kept(problem=f"the run is stored and judged, but its verdicts could not be read: {error}")


def keep_whatever(
    run: Run, *, output: Path | None, url: str | None, say: Callable[[str], None], judged: bool = True
) -> Kept:
    """As ``keep``; where the run could be kept nowhere, that is a problem like others."""
    try:
        return keep(run, output=output, url=url, say=say, judged=judged)
    except StoreError as error:
        return Kept(problem=f"{error}\nThe run could be kept nowhere: what is printed is all there is of it.")


def _rescued(run: Run, error: StoreError, bundle: Path | None = None) -> Kept:
    """Put the run into a bundle, unless it lies in one already, and say how to take it in."""
    bundle = bundle or _write_rescue(run)
    return Kept(
        problem=f"{error}\nThe run is not lost: it lies in {bundle}; `store import {bundle}` takes it in."
    )


def _write_rescue(run: Run) -> Path:
    """Here if possible, among temporary files otherwise."""
    name = f"kernelwatch-{run.header.run_id}{BUNDLE_SUFFIX}"
    with suppress(StoreError):
        write_bundle(run, Path(name))
        return Path(name)
    bundle = Path(tempfile.gettempdir()) / name
    write_bundle(run, bundle)
    return bundle


def _judge(run_id: str, url: str) -> tuple[str | None, str | None]:
    """Have the run judged; returns why it could not be, and else what has no answer.

    Rooms meet in the store: alerts is asked by its command, not imported. ``-P`` keeps a
    module called ``alerts`` in the user's folder from being taken for it, and a session of its
    own keeps Ctrl-C, which a terminal sends to every process in front, from ending it.
    """
    command = [sys.executable, "-P", "-m", "alerts", "judge"]
    command += ["--run", run_id, "--store", url, "--format", "json"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_JUDGE_LIMIT_S,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return (
            f"it took longer than {_JUDGE_LIMIT_S} s; run `alerts judge --run {run_id} --store {url}`",
            None,
        )
    if done.returncode in _JUDGED and done.stdout:
        return None, json.loads(done.stdout)["unanswered"]
    return done.stderr.strip() or f"`alerts judge` ended with status {done.returncode}", None
