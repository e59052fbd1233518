"""One comment made of sections, one per repository, GPU and suite: pure text.

Each section ends in a hidden line that names it, so that the next run finds its own again and
leaves the others as they are. The hidden line of the first format, which held a single section
per comment, is understood as well.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alerts.markdown import BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.records import RunHeader

HEAD_MARKER = "<!-- kernelwatch:head:v2 -->"
_MARKER = re.compile(r"^<!-- kernelwatch:(report:v1|section:v2|head:v2) ?([^<>]*)-->$", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\S*)")
_KEY = re.compile(r"[0-9a-f]{16}")
_TALLY = re.compile(r"\d{1,6}(\.\d{1,6}){6}")
_HEAD_ROOM = 500
_SHORT_LINE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many benchmarks came out how.

    Attributes:
        confirmed, flagged: regressed; ``flagged`` are those that no fresh session confirmed.
        excused: regressed, and accepted or muted by somebody.
    """

    confirmed: int = 0
    flagged: int = 0
    excused: int = 0
    improved: int = 0
    unchanged: int = 0
    inconclusive: int = 0
    not_measured: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally.of([a + b for a, b in zip(self.numbers, other.numbers, strict=True)])

    @property
    def numbers(self) -> tuple[int, ...]:
        """In the order of the fields."""
        return tuple(getattr(self, name) for name in _COUNTED)

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Tally:
        """The tally with these numbers, in the order of the fields."""
        return cls(**dict(zip(_COUNTED, numbers, strict=True)))

    @property
    def sign(self) -> str:
        """What is worst, as one sign that is never alone: words stand beside it."""
        if self.confirmed:
            return "\U0001f534"  # red circle
        if self.flagged:
            return "\U0001f7e0"  # orange circle
        if self.not_measured or self.inconclusive:
            return "\U0001f7e1"  # yellow circle
        return "\U0001f7e2" if self.improved or self.unchanged or self.excused else "\u26aa"  # green, white

    @property
    def words(self) -> str:
        """The counts that are not nothing: ``1 regressed (confirmed), 26 unchanged``."""
        parts = [
            f"{number} {_WORDS[name]}" for name, number in zip(_COUNTED, self.numbers, strict=True) if number
        ]
        return ", ".join(parts) or "nothing was measured"


_WORDS = {
    "confirmed": "regressed (confirmed)",
    "flagged": "regressed (not confirmed)",
    "excused": "regressed (accepted or muted)",
    "improved": "improved",
    "unchanged": "unchanged",
    "inconclusive": "inconclusive",
    "not_measured": "not measured",
}
_COUNTED = tuple(_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What is said about one run.

    Attributes:
        key: the same for every run that replaces this section; 16 hexadecimal digits.
        run_id: of the run.
        commit_sha: that was measured; empty where it is not known.
        text: Markdown; its first line is the answer.
    """

    key: str
    run_id: str
    commit_sha: str
    tally: Tally
    text: str

    @property
    def marker(self) -> str:
        """The hidden line at its end."""
        run = re.sub(r"[^0-9A-Za-z]", "-", self.run_id)[:36].strip("-")
        numbers = ".".join(map(str, self.tally.numbers))
        return (
            f"<!-- kernelwatch:section:v2 key={self.key} run={run} sha={self.commit_sha} tally={numbers} -->"
        )

    @property
    def whole(self) -> str:
        """Text and hidden line."""
        return f"{self.text.strip()}\n\n{self.marker}\n"


def section_key(header: RunHeader) -> str:
    """What runs that replace one another share: repository, GPU and suites."""
    return _digest(header.repository, header.gpu_uuid, *sorted(header.suites))


def first_key(header: RunHeader) -> str:
    """The key that the first format gave a run: repository and GPU."""
    return _digest(header.repository, header.gpu_uuid)


def parse(body: str) -> list[Section]:
    """The sections of a comment; none where it is not one of ours."""
    sections: list[Section] = []
    start = 0
    text = body.replace("\r\n", "\n")
    for match in _MARKER.finditer(text):
        fields = dict(_FIELD.findall(match[2]))
        if match[1] != "head:v2" and _KEY.fullmatch(fields.get("key", "")):
            sections.append(_section(fields, text[start : match.start()].strip()))
        start = match.end()
    return sections


def assemble(others: Sequence[Section], own: Callable[[int], Section]) -> str:
    """The comment: the worst section first, within GitHub's length.

    Args:
        others: what is said about other GPUs and suites. Of other commits only the answer is kept.
        own: renders the section at hand into so many bytes.
    """
    smallest = own(0)
    kept = [
        other
        if other.commit_sha in (smallest.commit_sha, "")
        else _shortened(other, "an older commit, not measured since")
        for other in others
    ]
    fair = (BYTES_MAX - _HEAD_ROOM) // (len(kept) + 1)
    dropped = 0
    while (room := BYTES_MAX - _HEAD_ROOM - sum(map(_size, kept))) < fair:
        largest = max(kept, key=_size)
        kept.remove(largest)
        shorter = _shortened(largest, "the details do not fit here")
        if _size(shorter) < _size(largest):
            kept.append(shorter)
        else:
            dropped += 1
    section = own(room - len(smallest.marker) - 3)
    sections = sorted([*kept, section], key=lambda one: (tuple(-n for n in one.tally.numbers[:2]), one.key))
    if len(sections) == 1 and not dropped:
        return section.whole
    total = sum((one.tally for one in sections), Tally())
    more = f"; {dropped} more do not fit here" if dropped else ""
    head = f"### {total.sign} {total.words}, in {len(sections)} reports{more}\n\n{HEAD_MARKER}\n"
    return "\n".join([head, *(one.whole for one in sections)])


def _section(fields: dict[str, str], text: str) -> Section:
    tally = fields.get("tally", "")
    numbers = tuple(map(int, tally.split("."))) if _TALLY.fullmatch(tally) else (0,) * len(_COUNTED)
    sha = fields.get("sha", "")
    return Section(
        key=fields["key"],
        run_id=fields.get("run", ""),
        commit_sha=sha if re.fullmatch(r"[0-9a-f]{0,64}", sha) else "",
        tally=Tally.of(numbers),
        text=text,
    )


def _shortened(section: Section, why: str) -> Section:
    """The answer alone. What it said stands in the run, which can be shown again."""
    first, _, rest = section.text.partition("\n")
    if rest.strip().startswith("_("):  # was shortened before
        return section
    return replace(section, text=f"{first[:_SHORT_LINE]}\n\n_({why})_")


def _size(section: Section) -> int:
    return len(section.whole.encode("utf-8", "backslashreplace")) + 1


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
