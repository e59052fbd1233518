"""A message as a section of a pull-request comment, in GitHub's Markdown, of bounded length.

Everything that comes from a benchmark stands in a code span: there GitHub sees no mention,
link, HTML or emphasis. The two characters that could end the span or the table cell are
written as escapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from alerts.change_words import drifted_since, how_much, search_command
from alerts.message import benchmarks_of, by_reason
from alerts.next_steps import accept_command, accept_order, again_title
from alerts.verdicts import CHANGES
from store import shown
from store.records import Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.message import Message, NotMeasured, Row
    from alerts.trends import Trend

# GitHub refuses bodies of more than 65,536 characters; bytes are never fewer than characters.
BYTES_MAX = 60_000
_LABEL_LIMIT = 200
_NAMED_IN_GROUP = 30
_PICTURE_WIDTH = 560
_NOTE_BYTES = 200  # what one "and N more" line may take
ZERO_WIDTH_SPACE = "\u200b"
# Markup, and what makes links by itself: "@name", "#12", "://", "www.".
_ACTIVE = re.compile(r"[&<>\"|`\[\]\\*_#~$@]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|us|ns)(?:[ )*]|$))")
_TABLE = (
    "| Benchmark | Change (95\u00a0%) | Verdict | Baseline | Candidate | Tier | Rests on |",
    "|---|---|---|---|---|---|---|",
)
_KEY = (
    "Times are medians with 95\u00a0% intervals. Tier A is the most trusted of A, B and C; q is the expected "
    "share of false alarms among changes as clear as this one."
)
_SIGNS = {
    (Outcome.REGRESSED, Standing.CONFIRMED): "\U0001f534 ",  # red circle
    (Outcome.REGRESSED, Standing.FLAGGED): "\U0001f7e0 ",  # orange circle
    (Outcome.IMPROVED, Standing.CONFIRMED): "\U0001f7e2 ",  # green circle
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a section says beyond the message, because of where it stands.

    Attributes:
        sign: what is worst, as one character before the answer.
        dashboard: the address of the pages, without a slash at its end, or None.
        workflow: the address of the workflow run that speaks, or None.
        orders: whether the pull request takes orders such as ``/kernelwatch accept``.
        trends: how changed series went, by series id.
    """

    sign: str = ""
    dashboard: str | None = None
    workflow: str | None = None
    orders: bool = False
    trends: Mapping[str, Trend] = field(default_factory=dict)


NOWHERE = Surroundings()


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that may be cut in the middle: ``rows`` loses its end, ``before`` and ``after`` stay."""

    before: Sequence[str]
    rows: Sequence[str]
    after: Sequence[str] = ("",)


def render_markdown(message: Message, around: Surroundings = NOWHERE, *, limit: int = BYTES_MAX) -> str:
    """The section: the answer first, then the worst; what does not fit is counted, never dropped silently.

    Args:
        message: what is told.
        around: where it stands.
        limit: bytes; the answer and the last lines are never cut, the rest is.
    """
    head = [f"### {around.sign} {prose(message.answer)}".replace("  ", " "), "", *_lead(message)]
    head += [prose(message.subject), ""]
    for caveat in message.caveats:
        head += [f"> {prose(caveat)}", ""]
    head += _advice(message, around)
    tail = [*_reproduce(message), *_links(message, around)]
    blocks = [block for block in _blocks(message, around) if block.rows]
    room = limit - _size(head) - _size(tail) - _NOTE_BYTES * len(blocks)
    body: list[str] = []
    for block in blocks:
        lines = _fit(block, room)
        room -= _size(lines)
        body += lines
    return "\n".join([*head, *body, *tail]).rstrip("\n") + "\n"


def code(text: str, *, limit: int = _LABEL_LIMIT) -> str:
    """Text from a benchmark as a code span that nothing in it can leave."""
    seen = shown.visible(text, limit=limit).replace("`", r"\x60").replace("|", r"\x7c")
    return f"`{seen.strip() or '(empty)'}`"


def _lead(message: Message) -> list[str]:
    """The worst change in one sentence: what, by how much, how sure."""
    row = next(iter(message.changed), None)
    if row is None or row.verdict.effect is None:
        return []
    verdict = row.verdict
    bounds = ""
    if verdict.effect_low is not None and verdict.effect_high is not None:
        low, high = sorted((abs(verdict.effect_low), abs(verdict.effect_high)))
        bounds = f" (95 %: {shown.size(low)} to {shown.size(high)})"
    more = f" The table has {len(message.changed) - 1} more." if len(message.changed) > 1 else ""
    drift = (
        ""
        if drifted_since(verdict) is None
        else " It drifted there over several commits; this one alone does not show it."
    )
    size = f"**{prose(how_much(verdict))}**"
    return [f"{code(row.label)} is {size}{bounds}, {_SURE[verdict.standing]}.{drift}{more}", ""]


_SURE = {
    Standing.CONFIRMED: "confirmed in a fresh session",
    Standing.FLAGGED: "seen in one session so far",
    Standing.WITHDRAWN: "but not in a fresh session",
    Standing.NONE: "not confirmed",
}


def _advice(message: Message, around: Surroundings) -> list[str]:
    """What a reader can do, where there is something to do."""
    worst = message.worst
    alarm = worst.verdict.standing if worst is not None and not worst.excuses else None
    if worst is not None and alarm is Standing.CONFIRMED:
        named = [worst.benchmark]
        accept = accept_order(named) if around.orders else accept_command(message.header, named)
        said = _search(worst, message.header.commit_sha)
        if accept is not None:
            said += f" If the slowdown is the price of something better: {code(accept)}."
    elif alarm is Standing.FLAGGED:
        again = f" Comment {code('/kernelwatch rerun')} for that." if around.orders else ""
        said = f"measure the commit once more. A flag fails nothing; a fresh session settles it.{again}"
    elif message.not_measured:
        said = "look at what was not measured: without a number nothing is known about its speed."
    else:
        return []
    return [f"**What to do:** {said}", ""]


def _search(worst: Row, sha: str | None) -> str:
    """Where to look for the cause of a confirmed regression."""
    between = search_command(worst.verdict, sha)
    if between is not None:
        return (
            f"do not look in this commit alone: {code('alerts steps')} dates what the store holds, and "
            f"{code(between)} measures commits in between."
        )
    kernels = "the kernels that changed stand below" if worst.kernels else "the same kernels ran as before"
    return f"find out why; {kernels}, and the command at the end measures again."


def _blocks(message: Message, around: Surroundings) -> list[_Block]:
    unchanged = f"{len(message.unchanged)} unchanged"
    if message.sensitivity is not None:
        unchanged += f": {message.sensitivity}"
    return [
        _Block(_TABLE, [_table_row(row) for row in message.changed], ("", _KEY, "")),
        _Block((), [line for row in message.changed for line in _trend(row, around)], ()),
        _Block(["**Kernels that changed**", ""], list(_kernels(message.changed))),
        _Block(["**Second session**", ""], list(_second_sessions(message.changed))),
        _Block(["**Not measured**", ""], list(_not_measured(message.not_measured))),
        _Block(["**Inconclusive**", ""], list(_inconclusive(message.inconclusive))),
        _Block(
            [f"<details><summary>{prose(unchanged)}</summary>", "", *_TABLE],
            [_table_row(row) for row in message.unchanged],
            ["", "</details>", ""],
        ),
    ]


def _table_row(row: Row) -> str:
    verdict = row.verdict
    q_value = "" if verdict.q_value is None else f", q {shown.probability(verdict.q_value)}"
    cells = (
        code(row.label),
        _change(row),
        _SIGNS.get((verdict.outcome, verdict.standing), "") + prose(row.decided),
        "-" if verdict.baseline is None else shown.interval(verdict.baseline, verdict.series.quantity),
        shown.interval(verdict.candidate, verdict.series.quantity),
        verdict.tier,
        prose(row.compared + q_value),
    )
    return f"| {' | '.join(map(_tied, cells))} |"


def _tied(text: str) -> str:
    """A number stays on one line with its unit."""
    return _UNIT.sub("\u00a0", text)


def _change(row: Row) -> str:
    """The change with its interval, in bold where it is one."""
    change, _, interval = row.effect.partition(" (")
    return f"**{change}** ({interval}" if interval and row.verdict.outcome in CHANGES else row.effect


def _trend(row: Row, around: Surroundings) -> Iterable[str]:
    """How the series went, of confirmed regressions: a picture, or its shape in characters."""
    trend = around.trends.get(row.verdict.series.id)
    if trend is None:
        return
    link = ""
    if around.dashboard is not None:
        query = urlencode({"series": row.verdict.series.id})
        link = f" ([all runs]({around.dashboard}/trends?{query}))"
    if trend.picture_url is not None:
        # One row each: a picture is kept with its caption or dropped with it.
        picture = f'<img src="{trend.picture_url}" width="{_PICTURE_WIDTH}" alt="{prose(trend.words)}">'
        yield f"{code(row.label)}{link}\n\n{picture}\n"
    else:
        yield f"{code(row.label)}: {code(trend.sparkline)} {prose(trend.words)}{link}\n"


def _kernels(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        for change in row.kernels:
            yield f"- {code(row.label)}: {code(change.name, limit=120)} {prose(change.what)}"


def _second_sessions(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row.sessions is not None:
            yield f"- {code(row.label)}: {prose(row.sessions)}"


def _not_measured(items: Iterable[NotMeasured]) -> Iterable[str]:
    for item in items:
        quoted = "" if item.quoted is None else f": {code(shown.one_line(item.quoted), limit=300)}"
        yield f"- {code(item.label)} {prose(item.why)}{quoted}"


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, labels in by_reason(rows):
        named = shown.enumerated([code(label, limit=80) for label in labels], most=_NAMED_IN_GROUP)
        yield f"- {prose(reason)} ({len(labels)}): {prose(why)}: {named}"


def _reproduce(message: Message) -> list[str]:
    command = message.command
    if command is None:
        return []
    # A fence that is longer than any run of backticks inside cannot be closed from there.
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", command)), default=0))
    return [f"**{again_title(benchmarks_of(message.changed))}**", "", f"{fence}sh", command, fence, ""]


def _links(message: Message, around: Surroundings) -> list[str]:
    links = []
    if around.dashboard is not None:
        query = urlencode({"sha": message.header.commit_sha or "", "run": message.header.run_id})
        links.append(f"[every number of this run]({around.dashboard}/commit?{query})")
    if around.workflow is not None:
        links.append(f"[the workflow that wrote this]({around.workflow})")
    return [" · ".join(links), ""] if links else []


def _fit(block: _Block, room: int) -> list[str]:
    room -= _size(block.before) + _size(block.after)
    kept: list[str] = []
    for row in block.rows:
        room -= _size([row])
        if room < 0:
            break
        kept.append(row)
    dropped = len(block.rows) - len(kept)
    lines = [*block.before, *kept, *block.after] if kept else []
    return [*lines, f"and {dropped} more that do not fit here", ""] if dropped else lines


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)


def prose(text: str) -> str:
    """Words of our own that may hold text from elsewhere: no markup, mention or link works in it."""
    return _ACTIVE.sub(_inert, shown.visible(text, limit=1000))


def _inert(match: re.Match[str]) -> str:
    character = match.group()[-1]
    # GitHub looks for mentions and issue numbers in the rendered text, where an entity is the
    # character again; an invisible space behind it breaks them.
    return f"{match.group()[:-1]}&#{ord(character)};{ZERO_WIDTH_SPACE if character in '@#' else ''}"
