"""A message as a pull-request comment in GitHub's Markdown, of bounded length.

Everything that comes from a benchmark stands in a code span: there GitHub sees no mention,
link, HTML or emphasis. The two characters that could end the span or the table cell are
written as escapes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.message import by_reason
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.message import Message, NotMeasured, Row
    from store.records import RunHeader

# GitHub refuses bodies of more than 65,536 characters; bytes are never fewer than characters.
BYTES_MAX = 60_000
_LABEL_LIMIT = 200
_NAMED_IN_GROUP = 30
_NOTE_BYTES = 200  # what one "and N more" line may take
ZERO_WIDTH_SPACE = "\u200b"
# Markup, and what makes links by itself: "@name", "#12", "://", "www.".
_ACTIVE = re.compile(r"[&<>|`\[\]\\*_#~$@]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_TABLE = (
    "| Benchmark | Baseline | Candidate | Change (95 %) | q | Tier | Rests on | Verdict |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines that may be cut in the middle: ``rows`` loses its end, ``before`` and ``after`` stay."""

    before: Sequence[str]
    rows: Sequence[str]
    after: Sequence[str] = ()


def render_markdown(message: Message) -> str:
    """The comment: the answer first, then the worst; what does not fit is counted, never dropped silently."""
    head = [f"**{_prose(message.answer)}**: {_prose(message.subject)}", ""]
    for caveat in message.caveats:
        head += [f"> {_prose(caveat)}", ""]
    tail = [*_reproduce(message.command), marker(message.header)]
    sections = [section for section in _sections(message) if section.rows]
    room = BYTES_MAX - _size(head) - _size(tail) - _NOTE_BYTES * len(sections)
    body: list[str] = []
    for section in sections:
        lines = _fit(section, room)
        room -= _size(lines)
        body += lines
    return "\n".join([*head, *body, *tail]) + "\n"


def marker(header: RunHeader) -> str:
    """The hidden line by which the bot finds its own comment again: one per repository and GPU."""
    key = hashlib.sha256(f"{header.repository}\n{header.gpu_uuid}".encode()).hexdigest()[:16]
    run = re.sub(r"[^0-9A-Za-z]", "-", header.run_id)[:36].strip("-")
    return f"<!-- kernelwatch:report:v1 key={key} run={run} -->"


def code(text: str, *, limit: int = _LABEL_LIMIT) -> str:
    """Text from a benchmark as a code span that nothing in it can leave."""
    seen = shown.visible(text, limit=limit).replace("`", r"\x60").replace("|", r"\x7c")
    return f"`{seen.strip() or '(empty)'}`"


def _sections(message: Message) -> list[_Section]:
    unchanged = f"{len(message.unchanged)} unchanged"
    if message.sensitivity is not None:
        unchanged += f": {message.sensitivity}"
    return [
        _Section(_TABLE, [_table_row(row) for row in message.changed], [""]),
        _Section(["**Kernels that changed**", ""], list(_kernels(message.changed)), [""]),
        _Section(["**Second session**", ""], list(_second_sessions(message.changed)), [""]),
        _Section(["**Not measured**", ""], list(_not_measured(message.not_measured)), [""]),
        _Section(["**Inconclusive**", ""], list(_inconclusive(message.inconclusive)), [""]),
        _Section(
            [f"<details><summary>{_prose(unchanged)}</summary>", "", *_TABLE],
            [_table_row(row) for row in message.unchanged],
            ["", "</details>", ""],
        ),
    ]


def _table_row(row: Row) -> str:
    verdict = row.verdict
    cells = (
        code(row.label),
        "-" if verdict.baseline is None else shown.interval(verdict.baseline, verdict.series.quantity),
        shown.interval(verdict.candidate, verdict.series.quantity),
        row.effect,
        _prose(shown.probability(verdict.q_value)),
        verdict.tier,
        row.compared,
        row.decided,
    )
    return f"| {' | '.join(cells)} |"


def _kernels(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        for change in row.kernels:
            yield f"- {code(row.label)}: {code(change.name, limit=120)} {_prose(change.what)}"


def _second_sessions(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row.sessions is not None:
            yield f"- {code(row.label)}: {_prose(row.sessions)}"


def _not_measured(items: Iterable[NotMeasured]) -> Iterable[str]:
    for item in items:
        quoted = "" if item.quoted is None else f": {code(shown.one_line(item.quoted), limit=300)}"
        yield f"- {code(item.label)} {_prose(item.why)}{quoted}"


def _inconclusive(rows: Sequence[Row]) -> Iterable[str]:
    for reason, why, members in by_reason(rows):
        named = ", ".join(code(row.label, limit=80) for row in members[:_NAMED_IN_GROUP])
        more = len(members) - _NAMED_IN_GROUP
        yield (
            f"- {_prose(reason)} ({len(members)}): {_prose(shown.one_line(why, limit=600))}: "
            f"{named}{f' and {more} more' if more > 0 else ''}"
        )


def _reproduce(command: str | None) -> list[str]:
    if command is None:
        return []
    # A fence that is longer than any run of backticks inside cannot be closed from there.
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", command)), default=0))
    return ["**Measure again**", "", f"{fence}sh", command, fence, ""]


def _fit(section: _Section, room: int) -> list[str]:
    room -= _size(section.before) + _size(section.after)
    kept: list[str] = []
    for row in section.rows:
        room -= _size([row])
        if room < 0:
            break
        kept.append(row)
    dropped = len(section.rows) - len(kept)
    lines = [*section.before, *kept, *section.after] if kept else []
    return [*lines, f"and {dropped} more that do not fit here", ""] if dropped else lines


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)


def _prose(text: str) -> str:
    """Words of our own that may hold text from elsewhere: no markup, mention or link works in it."""
    return _ACTIVE.sub(_inert, shown.visible(text, limit=1000))


def _inert(match: re.Match[str]) -> str:
    character = match.group()[-1]
    # GitHub looks for mentions and issue numbers in the rendered text, where an entity is the
    # character again; an invisible space behind it breaks them.
    return f"{match.group()[:-1]}&#{ord(character)};{ZERO_WIDTH_SPACE if character in '@#' else ''}"
