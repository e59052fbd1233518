"""The configuration file: found, read as TOML, and handed out table by table.

It is ``kernelwatch.toml``, or the table ``[tool.kernelwatch]`` of ``pyproject.toml``. Each room reads
the tables that are its own, as a dataclass (see ``store.settings``); a new table is one such
dataclass and one entry in ``TABLES``.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store import shown
from store.errors import ConfigurationInvalid
from store.settings import Place, nearest, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from store.settings import Record

CONFIG_VARIABLE = "KERNELWATCH_CONFIG"
OWN_FILE, SHARED_FILE = "kernelwatch.toml", "pyproject.toml"
_SHARED_TABLE = "tool.kernelwatch"

# What a file may hold: the name of each table, and the environment variables of its secrets by
# the key that somebody might write them under.
TABLES: dict[str, Mapping[str, str]] = {
    "judge": {},
    "tier": {},
    "collect": {},
    "mail": {"password": "KERNELWATCH_SMTP_PASSWORD"},
    "webhook": {},
}

_NEARLY_OURS = 0.9  # one letter wrong, missing or too many: no other tool is called so
_SECRET_KEY = re.compile(
    r"(.*[_-])?(passw(or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|credentials?)", re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The tables of one file; without a file everything is at its default.

    Attributes:
        file: where they stand, or None.
        tables: by name, as TOML gives them.
    """

    file: Path | None = None
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def read(self, name: str, kind: type[Record]) -> Record:
        """One table as a record; its defaults where the file does not have the table.

        Args:
            name: one of ``TABLES``.
            kind: the dataclass that says what the table may hold.

        Raises:
            ConfigurationInvalid: a key or a value is not what the dataclass allows.
        """
        return read_table(kind, self.tables.get(name, {}), self.place(name))

    def place(self, name: str) -> Place:
        """Where a table stands, or would stand, for messages."""
        shared = self.file is not None and self.file.name == SHARED_FILE
        return Place(str(self.file or OWN_FILE), f"{_SHARED_TABLE}.{name}" if shared else name)


def load_configuration(file: Path | None, *, start: Path) -> Configuration:
    """The configuration that holds here.

    Args:
        file: the file to read; the nearest one where None.
        start: where looking for the nearest begins; it goes upwards to the top folder of the
            repository, or of the file system where there is no repository.

    Raises:
        ConfigurationInvalid: a file cannot be read, is no TOML, has a table that nobody
            knows, or holds a secret; or two files of one folder both configure kernelwatch.
    """
    if file is not None:
        raw = _raw(file)
        if raw is None:
            raise ConfigurationInvalid(
                f"{_name(file)} has no table [{_SHARED_TABLE}]: add one, or name another file"
            )
        return _checked(file, raw)
    for folder in _upwards(start.resolve()):
        found = {path: raw for path in _candidates(folder) if (raw := _raw(path)) is not None}
        if len(found) > 1:
            raise ConfigurationInvalid(
                f"{_name(folder)} holds both {OWN_FILE} and a {SHARED_FILE} with [{_SHARED_TABLE}], and "
                "which of them should hold is not clear: keep one, or name it with --config"
            )
        for path, raw in found.items():
            return _checked(path, raw)
    return Configuration()


def _upwards(start: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield folder
        if (folder / ".git").exists():  # a file in worktrees and submodules
            return


def _candidates(folder: Path) -> list[Path]:
    return [path for name in (OWN_FILE, SHARED_FILE) if (path := folder / name).is_file()]


def _raw(file: Path) -> dict[str, Any] | None:
    """The tables of a file; None where a pyproject.toml has none for kernelwatch."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationInvalid(f"{_name(file)} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid(
            f"{_name(file)} is not UTF-8 (byte {error.start}): save it as UTF-8, as TOML asks for"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationInvalid(f"{_name(file)} is no TOML: {shown.one_line(str(error))}") from error
    if file.name != SHARED_FILE:
        return content
    tools = content.get("tool")
    if not isinstance(tools, dict):
        return None
    own = tools.get("kernelwatch")
    if own is None:
        _refuse_misspelt(file, tools)
    if own is not None and not isinstance(own, dict):
        raise ConfigurationInvalid(
            f"{_name(file)}: tool.kernelwatch is no table: write [{_SHARED_TABLE}.judge]"
        )
    return own


def _refuse_misspelt(file: Path, tools: Iterable[str]) -> None:
    """A table that is nearly ours was meant to be ours; passed over, it would leave the defaults in force."""
    plain = {"".join(character for character in name.lower() if character.isalnum()): name for name in tools}
    for near in difflib.get_close_matches("kernelwatch", plain, n=1, cutoff=_NEARLY_OURS):
        written = shown.visible(plain[near])
        raise ConfigurationInvalid(
            f"{_name(file)}: unknown table [tool.{written}]: did you mean [{_SHARED_TABLE}]?"
        )


def _checked(file: Path, raw: dict[str, Any]) -> Configuration:
    """What holds for every file, whoever reads which table of it."""
    shared = file.name == SHARED_FILE
    where = f"{_name(file)}, [{_SHARED_TABLE}]" if shared else _name(file)
    for name, table in raw.items():
        if name == "tool" and not shared:
            raise ConfigurationInvalid(f"{where}: in {OWN_FILE} tables stand at the top: write [judge]")
        if name not in TABLES:
            kind = "table" if isinstance(table, dict) else "key outside of any table,"
            raise ConfigurationInvalid(
                f"{where}: unknown {kind} {shown.visible(name)!r}{nearest(name, TABLES)}"
            )
        if not isinstance(table, dict):
            raise ConfigurationInvalid(f"{where}: {name} is no table: write [{name}] and its keys below")
    configuration = Configuration(file, raw)
    for name, table in raw.items():
        _refuse_secrets(table, configuration.place(name), TABLES[name])
    return configuration


def _refuse_secrets(table: Mapping[str, Any], place: Place, variables: Mapping[str, str]) -> None:
    for key, value in table.items():
        values = value if isinstance(value, list) else [value]
        texts = [text for text in values if isinstance(text, str)]
        if _SECRET_KEY.fullmatch(key) or any(_SECRET_VALUE.match(text) for text in texts):
            variable = variables.get(key)
            instead = f"set the environment variable {variable}" if variable else "give it by the environment"
            raise ConfigurationInvalid(
                f"{place}: {shown.visible(key)} looks like a secret, and files end up in git: take it "
                f"out, change it where it was committed, and {instead} (docs/configuration.md)"
            )
        for number, inner in enumerate(values, 1):
            if isinstance(inner, dict):
                below = place.below(key, number if isinstance(value, list) else None)
                _refuse_secrets(inner, below, variables)


def _name(path: Path) -> str:
    return shown.visible(str(path))
