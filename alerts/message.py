"""What is told about a run, worst first: pure, and the same for comment, mail and terminal.

Text from benchmarks is carried as it is; whoever renders a message escapes it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.change_words import drifted_since
from alerts.kernels import KernelChange, kernel_changes
from alerts.next_steps import again_command
from alerts.order import worst_first
from alerts.triage_words import LABEL_LIMIT, acceptance_words, mute_words
from alerts.verdicts import CHANGES
from store import shown
from store.records import BaselineKind, Outcome, Reason, Standing
from store.sessions import both_sessions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.judge import JudgedPoint, RunJudgement
    from store.records import RunHeader, Verdict
    from store.triage_events import TriageEvent

_WORST = 5
_WHY_LIMIT = 600
_SPREAD_WORTH_A_WORD = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One benchmark and what was decided about it."""

    label: str
    benchmark: str
    verdict: Verdict
    kernels: tuple[KernelChange, ...]
    muted: TriageEvent | None = None
    accepted: TriageEvent | None = None

    @property
    def decided(self) -> str:
        """The verdict with its standing and what people said to it: ``REGRESSED, confirmed, muted``.

        Of a drift: ``REGRESSED since v1.2.0, confirmed``.
        """
        since = drifted_since(self.verdict)
        words = [self.verdict.outcome.value if since is None else f"{self.verdict.outcome} since {since}"]
        if self.verdict.standing is not Standing.NONE:
            words.append(self.verdict.standing.value)
        return ", ".join([*words, *self.excuses])

    @property
    def excuses(self) -> tuple[str, ...]:
        """Why a regression here is no alarm: ``accepted``, ``muted``, both or nothing."""
        known = (("accepted", self.accepted), ("muted", self.muted))
        return tuple(word for word, event in known if event is not None)

    @property
    def sessions(self) -> str | None:
        """Both sessions that a flag was seen in, or not, and what follows; None where there was one alone."""
        return both_sessions(self.verdict)

    @property
    def effect(self) -> str:
        """The change with its 95 % interval, or a dash where nothing was compared."""
        verdict = self.verdict
        if verdict.effect is None or verdict.effect_low is None or verdict.effect_high is None:
            return "-"
        return (
            f"{shown.change(verdict.effect)} "
            f"({shown.change(verdict.effect_low)} to {shown.change(verdict.effect_high)})"
        )

    @property
    def compared(self) -> str:
        """How much the comparison rests on: ``8 windows, 20 runs``, or ``8 windows, paired``."""
        runs = len(self.verdict.baseline_run_ids)
        windows = shown.count(self.verdict.windows, "window")
        if self.verdict.baseline_kind is BaselineKind.PAIRED:
            return f"{windows}, paired"
        if self.verdict.baseline_kind is BaselineKind.ANCHOR and self.verdict.drift is not None:
            return f"{windows}, {shown.count(runs, 'run')} up to {shown.visible(self.verdict.drift.since)}"
        return f"{windows}, {shown.count(runs, 'run')}" if runs else windows


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMeasured:
    """A benchmark, or a suite file, that has no number in this run.

    Attributes:
        why: in our words.
        quoted: what the benchmark said itself, or None.
    """

    label: str
    why: str
    quoted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Everything a reader is told about one run.

    Attributes:
        answer: the counts, in one line; nothing in it comes from a benchmark.
        subject: what was judged, against what, where.
        caveats: what a reader must know before believing the rest.
        changed: rows that moved, worst first.
        inconclusive, unchanged: the other rows, by label.
        sensitivity: how small a slowdown would have been seen, or None.
        command: a shell command that measures the worst changes again, or None.
    """

    header: RunHeader
    answer: str
    subject: str
    caveats: tuple[str, ...]
    changed: tuple[Row, ...]
    inconclusive: tuple[Row, ...]
    unchanged: tuple[Row, ...]
    not_measured: tuple[NotMeasured, ...]
    sensitivity: str | None
    command: str | None

    @property
    def worst(self) -> Row | None:
        """The first regression that nobody excused, else the first of all, or None."""
        regressed = [row for row in self.changed if row.verdict.outcome is Outcome.REGRESSED]
        return next((row for row in regressed if not row.excuses), next(iter(regressed), None))


def compose(judgement: RunJudgement) -> Message:
    """Say what was decided about a run, the worst first."""
    rows = [_row(item) for item in judgement.judged if not item.is_sentinel]
    changed = sorted((row for row in rows if row.verdict.outcome in CHANGES), key=_rank)
    inconclusive = [row for row in rows if row.verdict.outcome is Outcome.INCONCLUSIVE]
    unchanged = [row for row in rows if row.verdict.outcome is Outcome.UNCHANGED]
    not_measured = tuple(_not_measured(judgement))
    sensitivity = _sensitivity(unchanged)
    return Message(
        header=judgement.header,
        answer=_answer(changed, inconclusive, unchanged, not_measured, sensitivity),
        subject=_subject(judgement, rows),
        caveats=(*_caveats(judgement, changed, unchanged), *_thresholds(judgement), *_excuses(rows)),
        changed=tuple(changed),
        inconclusive=tuple(inconclusive),
        unchanged=tuple(unchanged),
        not_measured=not_measured,
        sensitivity=sensitivity,
        command=again_command(judgement.header, benchmarks_of(changed), against=_partner_commit(judgement)),
    )


def benchmarks_of(rows: Iterable[Row]) -> list[str]:
    """The names of their benchmarks, each once, in the order of the rows."""
    return list(dict.fromkeys(row.benchmark for row in rows))


def by_reason(rows: Iterable[Row]) -> list[tuple[Reason, str, list[str]]]:
    """What is inconclusive for the same reason, most first: the reason, why on one line, the labels."""
    groups: dict[tuple[Reason, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row.verdict.reason, row.verdict.message), []).append(row.label)
    found = sorted(groups.items(), key=lambda group: (-len(group[1]), *group[0]))
    return [(reason, shown.one_line(why, limit=_WHY_LIMIT), labels) for (reason, why), labels in found]


def _row(item: JudgedPoint) -> Row:
    changed = item.verdict.outcome in CHANGES and item.before is not None
    return Row(
        label=item.point.series.case.label,
        benchmark=item.point.series.case.benchmark,
        verdict=item.verdict,
        kernels=kernel_changes(item.before.kernels, item.point.kernels) if changed and item.before else (),
        muted=item.muted,
        accepted=item.accepted,
    )


def _rank(row: Row) -> tuple[int, bool, bool, float, float, str]:
    return *worst_first(row.verdict, excused=bool(row.excuses)), row.label


def _answer(
    changed: Sequence[Row],
    inconclusive: Sequence[Row],
    unchanged: Sequence[Row],
    not_measured: Sequence[NotMeasured],
    sensitivity: str | None,
) -> str:
    new = sum(row.verdict.reason is Reason.NEW_BENCHMARK for row in inconclusive)
    parts = [
        _changes(changed, Outcome.REGRESSED, "regressed"),
        _changes(changed, Outcome.IMPROVED, "improved"),
        f"{len(unchanged)} unchanged" if unchanged else "",
        f"{len(inconclusive) - new} inconclusive" if len(inconclusive) > new else "",
        f"{new} new" if new else "",
        f"{len(not_measured)} not measured" if not_measured else "",
    ]
    said = ", ".join(part for part in parts if part) or "Nothing was measured"
    if not changed and sensitivity is not None:
        return f"{said}: {sensitivity}"
    return said


def _changes(changed: Sequence[Row], outcome: Outcome, word: str) -> str:
    """Counts such as ``3 regressed (1 confirmed, 2 flagged)``; withdrawn ones are named as such."""
    rows = [row for row in changed if row.verdict.outcome is outcome]
    if not rows:
        return ""
    standings = [
        f"{number} {standing}"
        for standing in (Standing.CONFIRMED, Standing.FLAGGED, Standing.WITHDRAWN)
        if (number := sum(row.verdict.standing is standing for row in rows))
    ]
    excused = [
        f"{number} of them {excuse}"
        for excuse in ("accepted", "muted")
        if (number := sum(excuse in row.excuses for row in rows))
    ]
    drifts = sum(drifted_since(row.verdict) is not None for row in rows)
    drifted = [f"{drifts} of them by drift"] if drifts else []
    return f"{len(rows)} {word} ({', '.join([*standings, *drifted, *excused])})"


def _subject(judgement: RunJudgement, rows: Sequence[Row]) -> str:
    header = judgement.header
    tiers = sorted({row.verdict.tier for row in rows})
    counts = (
        f"tier {tiers[0]}"
        if len(tiers) == 1
        else ", ".join(f"{sum(row.verdict.tier is tier for row in rows)} of tier {tier}" for tier in tiers)
    )
    what = shown.short(header.commit_sha) + (" with uncommitted changes" if header.dirty else "")
    return (
        f"{what} against {judgement.baseline} on {shown.one_line(header.gpu_name)}"
        f"{f', {counts}' if counts else ''}"
    )


def _sensitivity(unchanged: Sequence[Row]) -> str | None:
    sizes = [row.verdict.smallest_seen for row in unchanged]
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return None
    said = f"no slowdown larger than {shown.share(max(known))} would have been missed"
    middle = statistics.median(known)
    if max(known) > _SPREAD_WORTH_A_WORD * middle:
        said += f", none larger than {shown.share(middle)} in half of them"
    return said


def _caveats(judgement: RunJudgement, changed: Sequence[Row], unchanged: Sequence[Row]) -> Iterable[str]:
    header = judgement.header
    moved = [item for item in judgement.judged if item.verdict.reason is Reason.MACHINE_MOVED]
    if moved:
        yield f"No verdict: {moved[0].verdict.message}."
    if judgement.new_series is not None:
        yield f"{judgement.new_series}."
    if judgement.renamed:
        yield f"Renamed, with their history: {_renames(judgement)}."
    yield from _drifts(judgement)
    if header.dirty:
        yield "Measured with uncommitted changes: the commit alone does not reproduce these numbers."
    if header.interrupted:
        yield "The run was ended early; what it holds was measured in full."
    if any(row.verdict.baseline_kind is BaselineKind.SINGLE for row in (*changed, *unchanged)):
        yield (
            "Provisional: a single baseline run says nothing about how far two sessions lie apart. "
            "With six baseline runs or more, flags can be confirmed."
        )
    elif any(row.verdict.standing is Standing.FLAGGED and row.verdict.second is None for row in changed):
        yield "A flag was seen in one run; measuring the commit again in a fresh session settles it."


def _renames(judgement: RunJudgement) -> str:
    names = dict.fromkeys(
        f"{shown.visible(old)} to {shown.visible(case.benchmark)}" for old, case in judgement.renamed
    )
    return shown.enumerated(list(names), most=_WORST)


def _drifts(judgement: RunJudgement) -> Iterable[str]:
    """Drifts, and changes since a release that decided nothing, as they are judged on the base branch."""
    apart = [
        item
        for item in judgement.judged
        if item.verdict.drift is not None and item.verdict.drift.apart and not item.is_sentinel
    ]
    decided = [_drift(item) for item in apart if item.verdict.reason is Reason.DRIFTED]
    silent = [_drift(item) for item in apart if item.verdict.outcome is Outcome.UNCHANGED]
    if decided:
        named = shown.enumerated(decided, most=_WORST)
        yield f"Drift: {named}. No single commit shows it; the runs just before do not differ."
    if silent:
        yield f"Since earlier, and not by this commit: {shown.enumerated(silent, most=_WORST)}."


def _drift(item: JudgedPoint) -> str:
    drift, label = item.verdict.drift, item.point.series.case.label
    said = "" if drift is None else f" {shown.change(drift.effect)} since {shown.visible(drift.since)}"
    return f"{shown.visible(label, limit=LABEL_LIMIT)}{said}"


def _thresholds(judgement: RunJudgement) -> Iterable[str]:
    """What was not judged by the defaults, so that nobody takes a loose verdict for a strict one."""
    tested = [item for item in judgement.judged if not item.is_sentinel]
    notes = Counter(note for item in tested if (note := item.policy.note) is not None)
    for note, number in notes.most_common():
        what = "Judged" if number == len(tested) else f"{shown.count(number, 'case')} judged"
        yield f"{what} by thresholds other than the defaults: {note}."


def _excuses(rows: Sequence[Row]) -> Iterable[str]:
    """What people decided about benchmarks of this run: ``1 muted until 2027-01-31 by Ada: why (...)``."""
    about: dict[str, tuple[str, list[str]]] = {}
    for row in rows:
        for event, words in ((row.accepted, acceptance_words), (row.muted, mute_words)):
            if event is not None:
                about.setdefault(event.event_id, (words(event), []))[1].append(row.label)
    for said, labels in about.values():
        named = [shown.visible(label, limit=LABEL_LIMIT) for label in labels]
        yield f"{len(labels)} {said} ({shown.enumerated(named, most=_WORST)})"


def _not_measured(judgement: RunJudgement) -> Iterable[NotMeasured]:
    for failure in judgement.failures:
        never = ", and was never measured on an ancestor" if failure.case in judgement.never_measured else ""
        yield NotMeasured(
            label=failure.source if failure.case is None else failure.case.label,
            why=f"failed in {failure.stage}{never}",
            quoted=f"{failure.kind}: {failure.message}",
        )
    for case in judgement.missing:
        last = judgement.last_measured.get(case)
        measured = "has a baseline" if last is None else f"was last measured on {last}"
        yield NotMeasured(label=case.label, why=f"{measured}, and was not part of this run")


def _partner_commit(judgement: RunJudgement) -> str | None:
    """The commit that took turns with the judged one, where there was one."""
    return next(
        (
            item.before.header.commit_sha
            for item in judgement.judged
            if item.before is not None and item.verdict.baseline_kind is BaselineKind.PAIRED
        ),
        None,
    )
