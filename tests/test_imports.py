"""Which room may import which, and which packages only where they are needed."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]

# The flow of data: measure -> remember -> judge and tell -> show.
MAY_IMPORT = {
    "collector": {"store"},
    "store": set[str](),
    "alerts": {"store"},
    "dashboard": {"store", "alerts"},
}

# Slow to import, or absent where a room is installed without its extra: imported inside
# functions, except in the parts of a room that are themselves imported late.
HEAVY_AT_THE_TOP: dict[str, tuple[str, ...]] = {
    "altair": ("dashboard/charts/", "dashboard/views/"),
    "cuda": (),
    "cupti": (),
    "pandas": ("dashboard/charts/", "dashboard/views/"),
    "pynvml": (),
    "streamlit": ("dashboard/",),
    "torch": ("collector/suites/",),
    "vl_convert": (),
}

# A worker runs with the interpreter of the code under test, where nothing of kernelwatch is
# installed: it has the standard library, and these where the code under test brings them.
WORKER_ENTRY = "collector/worker.py"
WORKER_MAY_IMPORT = {"collector", "numpy", "torch", "cupti", "pynvml"} | sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class Import:
    """One module that a file imports.

    Attributes:
        file: relative to the root, with forward slashes.
        module: absolute dotted name; of ``from a import b`` both ``a`` and ``a.b`` are listed.
        late: inside a function, so that it costs nothing until that is called.
        for_types: under ``if TYPE_CHECKING``, so that it never runs.
    """

    file: str
    line: int
    module: str
    late: bool
    for_types: bool

    @property
    def top(self) -> str:
        """The name a distribution would have to bring."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports_of(source: str, file: str) -> Iterator[Import]:
    """Every import statement of a file, wherever it stands."""
    yield from _walk(ast.parse(source, file), file, late=False, for_types=False)


def _walk(node: ast.AST, file: str, *, late: bool, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for module in _modules(node, file):
            yield Import(file, node.lineno, module, late, for_types)
        return
    inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for statement in node.body:
            yield from _walk(statement, file, late=inside, for_types=True)
        for statement in node.orelse:
            yield from _walk(statement, file, late=inside, for_types=for_types)
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, file, late=inside, for_types=for_types)


def _modules(node: ast.Import | ast.ImportFrom, file: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    package = Path(file).parent.parts  # of a module and of an __init__.py alike
    parts = package[: len(package) - node.level + 1] if node.level else ()
    base = ".".join((*parts, *([node.module] if node.module else [])))
    if base:
        yield base
    yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def files_of(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def all_imports() -> list[Import]:
    return [
        found
        for room in MAY_IMPORT
        for path in files_of(room)
        for found in imports_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


def against_the_flow(imports: list[Import]) -> list[str]:
    return sorted(
        {
            str(found)
            for found in imports
            if found.top in MAY_IMPORT
            and found.top != (room := found.file.partition("/")[0])
            and found.top not in MAY_IMPORT[room]
        }
    )


def heavy_at_import(imports: list[Import]) -> list[str]:
    return sorted(
        {
            str(found)
            for found in imports
            if found.top in HEAVY_AT_THE_TOP
            and not (found.late or found.for_types)
            and not found.file.startswith(HEAVY_AT_THE_TOP[found.top])
        }
    )


def what_loads_with(entry: str, *, late_too: bool) -> list[Import]:
    """Imports of a file and of all files of ours that it loads, packages' ``__init__.py`` included."""
    waiting, seen, loaded = [entry], set[str](), list[Import]()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        waiting.append(f"{file.partition('/')[0]}/__init__.py")
        found = [
            i
            for i in imports_of((ROOT / file).read_text(encoding="utf-8"), file)
            if not i.for_types and (late_too or not i.late)
        ]
        loaded += found
        waiting += [ours for i in found if i.top in MAY_IMPORT and (ours := _file_of(i.module))]
    return loaded


def _file_of(module: str) -> str | None:
    path = module.replace(".", "/")
    candidates = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in candidates if (ROOT / file).is_file()), None)


def test_every_room_has_files_to_read() -> None:
    assert all(files_of(room) for room in MAY_IMPORT)


def test_imports_follow_the_flow_of_data() -> None:
    assert against_the_flow(all_imports()) == []


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    assert heavy_at_import(all_imports()) == []


def test_the_records_need_the_standard_library_alone() -> None:
    source = (ROOT / "store/records.py").read_text(encoding="utf-8")

    foreign = [str(i) for i in imports_of(source, "store/records.py") if i.top not in sys.stdlib_module_names]

    assert foreign == []


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_console_command_starts_without_heavy_packages(room: str) -> None:
    loaded = what_loads_with(f"{room}/cli.py", late_too=False)

    assert sorted({str(i) for i in loaded if i.top in HEAVY_AT_THE_TOP}) == []


def test_a_worker_loads_only_the_measuring_part() -> None:
    loaded = what_loads_with(WORKER_ENTRY, late_too=True)

    assert sorted({str(i) for i in loaded if i.top not in WORKER_MAY_IMPORT}) == []
    assert {i.file for i in loaded} > {WORKER_ENTRY}


def test_a_suite_of_ours_is_a_file_like_any_other() -> None:
    files = files_of("collector/suites")
    foreign = {
        str(found)
        for path in files
        for found in imports_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
        if found.top not in WORKER_MAY_IMPORT
    }

    assert files
    assert sorted(foreign) == []


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("store/a.py", "import alerts.judge", "store/a.py:1 imports alerts.judge"),
        ("store/a.py", "def f():\n    from alerts import judge", "store/a.py:2 imports alerts"),
        ("store/sub/a.py", "from ... import alerts", "store/sub/a.py:1 imports alerts"),
        ("store/sub/a.py", "from ..records import Run", "store/sub/a.py:1 imports store.records"),
        ("store/__init__.py", "from . import records", "store/__init__.py:1 imports store.records"),
        ("store/a.py", "if TYPE_CHECKING:\n    import alerts", "store/a.py:2 imports alerts"),
        ("store/a.py", "try:\n    import alerts\nfinally:\n    pass", "store/a.py:2 imports alerts"),
    ],
)
def test_the_reader_sees_an_import_wherever_it_stands(file: str, source: str, expected: str) -> None:
    assert expected in map(str, imports_of(source, file))


def test_an_arrow_against_the_flow_is_named_with_its_place() -> None:
    planted = list(imports_of("import json\n\nfrom alerts.judge import judge\n", "store/planted.py"))

    assert against_the_flow(planted) == [
        "store/planted.py:3 imports alerts.judge",
        "store/planted.py:3 imports alerts.judge.judge",
    ]


def test_an_import_for_types_is_an_arrow_too_but_costs_nothing() -> None:
    planted = list(imports_of("if TYPE_CHECKING:\n    import collector, torch\n", "alerts/planted.py"))

    assert against_the_flow(planted) == ["alerts/planted.py:2 imports collector"]
    assert heavy_at_import(planted) == []


def test_a_heavy_package_at_the_top_of_a_module_is_named() -> None:
    source = "import altair\n\ndef chart():\n    import torch\n"

    assert heavy_at_import(list(imports_of(source, "alerts/planted.py"))) == [
        "alerts/planted.py:1 imports altair"
    ]
