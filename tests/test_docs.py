"""What the documentation says exists, exists."""

from __future__ import annotations

import importlib
import re
import runpy
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from store.records import CacheState, ClockRegime, Outcome, Tier, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum

ROOT = Path(__file__).parents[1]
ROOM_OF_COMMAND = {"collect": "collector", "store": "store", "alerts": "alerts", "dashboard": "dashboard"}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SHELL = {"sh", "bash", "console"}
PLACEHOLDER = re.compile(r"[A-Z_]+|\.\.\.|<.*>")

# Words that praise instead of telling, or that put something off.
FORBIDDEN = re.compile(
    r"\b(blazing|cutting.edge|effortless(ly)?|leverag(e|es|ing)|powerful|robust|seamless(ly)?|simply|"
    r"state.of.the.art|utili[sz]e|world.class|TODO|FIXME|TBD|coming soon)\b",
    re.IGNORECASE,
)


def tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file()]


DOCUMENTS = tracked("*.md")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command line that a document shows."""

    file: str
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.words)}"


def commands_in(text: str, file: str) -> Iterator[Shown]:
    """Command lines of ours in shell blocks and in inline code, without what stands before them."""
    for match in FENCE.finditer(text):
        if match[1] in SHELL:
            first = text.count("\n", 0, match.start(2)) + 1
            for number, line in enumerate(match[2].replace("\\\n", "  ").splitlines(), first):
                yield from _ours(line.removeprefix("$ "), file, number, fewest_words=1)
    blanked = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for match in INLINE.finditer(blanked):
        # A single word is the name of a room, not a command line.
        yield from _ours(match[1], file, blanked.count("\n", 0, match.start()) + 1, fewest_words=2)


def _ours(line: str, file: str, number: int, *, fewest_words: int) -> Iterator[Shown]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an apostrophe in inline code: no command line
        return
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words.pop(0)
    if "->" in words:  # an arrow between rooms, not a command line
        return
    if len(words) >= fewest_words and words[0].removeprefix(".venv/bin/") in {*ROOM_OF_COMMAND, "make"}:
        yield Shown(file, number, (words[0].removeprefix(".venv/bin/"), *words[1:]))


def the_command(name: str) -> click.Command:
    """What the console command runs: ``main``, or what ``main`` calls, which bears its name."""
    module = importlib.import_module(f"{ROOM_OF_COMMAND[name]}.cli")
    found = [getattr(module, attribute, None) for attribute in (name, "main")]
    return next(command for command in found if isinstance(command, click.Command))


def unknown_words(shown: Shown, command: click.Command) -> list[str]:
    """Options, and words in the place of a subcommand, that the command does not know."""
    known, unknown = {"--help"}, []
    known |= _options(command)
    for word in shown.words[1:]:
        option = word.partition("=")[0].strip("[].")
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            known |= _options(command)
        elif option.startswith("-") and len(option) > 1:
            if option not in known:
                unknown.append(option)
        elif isinstance(command, click.Group) and not command.invoke_without_command:
            if not PLACEHOLDER.fullmatch(word):
                unknown.append(word)
            break
    return unknown


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def every_command(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from every_command(child, f"{path} {name}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_that_is_shown_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    wrong = []
    for shown in commands_in(document.read_text(encoding="utf-8"), str(document.relative_to(ROOT))):
        if shown.words[0] == "make":
            goals = {word for word in shown.words[1:] if "=" not in word and not word.startswith("-")}
            unknown = sorted(goals - targets)
        else:
            unknown = unknown_words(shown, the_command(shown.words[0]))
        wrong += [f"{shown} - unknown: {word}" for word in unknown]

    assert wrong == []


def test_the_readme_shows_every_console_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    shown = {found.words[0] for found in commands_in(text, "README.md")}

    assert shown >= {*ROOM_OF_COMMAND, "make"}


@pytest.mark.parametrize("name", ROOM_OF_COMMAND)
def test_every_command_and_every_option_explains_itself(name: str) -> None:
    silent = []
    for path, command in every_command(the_command(name), name):
        if not command.help:
            silent.append(path)
        silent += [
            f"{path} {parameter.opts[0]}"
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.help
        ]

    assert silent == []


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(text: str, document: Path) -> list[str]:
    """Relative links to no file, and anchors to no heading."""
    broken = []
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        pointed = (document.parent / path).resolve() if path else document
        if not pointed.exists():
            broken.append(target)
        elif anchor and pointed.suffix == ".md":
            headings = HEADING.findall(FENCE.sub("", pointed.read_text(encoding="utf-8")))
            if anchor not in map(slug, headings):
                broken.append(target)
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    assert broken_links(document.read_text(encoding="utf-8"), document) == []


def test_every_document_that_the_code_points_to_exists() -> None:
    named = {
        f"{path.relative_to(ROOT)}: {name}"
        for pattern in ("*.py", "*.sql", "*.toml", "*.sh", "*.yml")
        for path in tracked(pattern)
        for name in re.findall(r"docs/[\w/-]+(?:\.md)?", path.read_text(encoding="utf-8"))
        if path != Path(__file__) and not _names_a_document(name)
    }

    assert sorted(named) == []


def _names_a_document(name: str) -> bool:
    """Whether it is a path, or a decision by its number alone."""
    return (ROOT / name).exists() or any((ROOT / name).parent.glob(f"{Path(name).name}-*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_documentation_tells_and_does_not_praise(document: Path) -> None:
    found = [match[0] for match in FORBIDDEN.finditer(document.read_text(encoding="utf-8"))]

    assert found == []


def test_every_decision_has_its_own_number_and_says_what_was_decided() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))

    assert len({path.name[:4] for path in decisions}) == len(decisions)
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.name[:4]}: "), path.name
        assert "**Decided:**" in text, path.name


def test_the_folding_decision_shows_what_its_simulation_gives() -> None:
    program = runpy.run_path(str(ROOT / "tests/bench/bench_coverage.py"))
    two_states = program["SCENARIOS"][2]

    cells = program["simulate"](two_states, 8, program["REPEATS"])
    row = program["table_row"](two_states, 8, cells)

    assert row in (ROOT / "docs/decisions/0002-folding.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [Timer, ClockRegime, CacheState, Tier, Outcome], ids=lambda e: e.__name__)
def test_the_glossary_knows_every_value_that_a_page_may_show(words: type[StrEnum]) -> None:
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")

    assert [word for word in words if not re.search(rf"\b{word}\b", glossary)] == []


@click.group()
def a_group() -> None:
    """A command with one subcommand, to check the checks with."""


@a_group.command()
@click.option("--state", help="Which ones.")
def show(state: str) -> None:
    """Show them."""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("store show --state=all", []),
        ("store show --gone", ["--gone"]),
        ("store vanish", ["vanish"]),
        ("store --state all show", ["--state", "all"]),
        ("store COMMAND", []),
    ],
)
def test_a_word_that_no_command_knows_is_found(line: str, expected: list[str]) -> None:
    shown = Shown("README.md", 1, tuple(line.split()))

    assert unknown_words(shown, a_group) == expected


def test_command_lines_are_found_with_their_place() -> None:
    block = "```sh\n$ A=1 .venv/bin/store show \\\n    --state x  # why\nls\n```\n"
    text = f"`make run`\n\n{block}`store` is a word, `store -> none` an arrow.\n"

    assert [str(found) for found in commands_in(text, "a.md")] == [
        "a.md:4: store show --state x",
        "a.md:1: make run",
    ]


def test_a_link_to_no_file_and_an_anchor_to_no_heading_are_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# The title, in full\n", encoding="utf-8")
    text = "[a](page.md#the-title-in-full) [b](gone.md) [c](#gone) [d](https://example.org/gone)"

    document.write_text(f"# The title, in full\n\n{text}\n", encoding="utf-8")

    assert broken_links(text, document) == ["gone.md", "#gone"]
