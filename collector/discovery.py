"""Find the benchmarks of suite files, and report what keeps any of them from being found."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import sys
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector import parameters
from collector.cases import OPTIONS_ATTRIBUTE, PREFIX, BenchmarkCase, Options
from collector.failures import Place, SuiteError, from_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

_SUITE_NAME = re.compile(r"bench_.*\.py|.*_bench\.py")


@dataclass
class _Suite:
    """One suite file while it is read."""

    given: Path
    place: Place
    cases: list[BenchmarkCase] = field(default_factory=list)
    errors: list[SuiteError] = field(default_factory=list)

    def report(self, message: str, kind: str, *, line: int | None = None, case: str | None = None) -> None:
        place = self.place if line is None else self.place.at(line)
        self.errors.append(SuiteError(message, stage="import", kind=kind, source=str(place), case=case))


@dataclass(frozen=True)
class _Outline:
    """What only the text of a suite tells.

    Attributes:
        params_line: where ``PARAMS`` is set, or 1.
        definitions: the lines on which each function is defined at the outermost level.
        bound: names that the text defines or assigns; a ``bench_*`` function under another
            name's module that is not among them was imported.
    """

    params_line: int
    definitions: dict[str, list[int]]
    bound: frozenset[str]

    @classmethod
    def of(cls, source: bytes) -> _Outline:
        """Read the text of a file that is known to compile."""
        tree = ast.parse(source)
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        definitions: dict[str, list[int]] = {}
        for node in tree.body:
            if isinstance(node, functions):
                definitions.setdefault(node.name, []).append(node.lineno)
        stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        named = [n.name for n in ast.walk(tree) if isinstance(n, (*functions, ast.ClassDef))]
        return cls(
            params_line=next((n.lineno for n in stored if n.id == "PARAMS"), 1),
            definitions=definitions,
            bound=frozenset(named) | {n.id for n in stored},
        )


@dataclass(frozen=True)
class _Benchmark:
    """A benchmark's function as found in a suite."""

    name: str
    function: Callable[..., object]
    line: int
    options: Options
    signature: parameters.Signature


def load_suites(paths: Sequence[Path], *, root: Path) -> tuple[list[BenchmarkCase], list[SuiteError]]:
    """Import suite files and make the cases of their benchmarks, in the order they are defined.

    A folder stands for the files named ``bench_*.py`` or ``*_bench.py`` in it and below it.
    The root, its ``src`` and each suite's own folder become importable and stay so, since
    benchmarks may import while they are set up.

    Args:
        paths: suite files and folders; the same file twice is loaded once.
        root: the repository of the code under test; sources are shown relative to it.

    Returns:
        The cases, and one error for each thing that is not as it was meant to be.
    """
    root = root.resolve()
    for folder in (root, root / "src"):
        if folder.is_dir():
            _put_first_on_path(folder)
    files, errors = _find_files(paths)
    suites = [_Suite(given, Place(file, 1, root)) for file, given in files.items()]
    folders: set[Path] = set()
    for suite in suites:
        _load(suite, folders)
    cases = [case for suite in suites for case in suite.cases]
    unclear = [*_ambiguous_names(cases), *_contested_renames(cases)]
    errors += [error for suite in suites for error in suite.errors] + unclear
    refused = {error.case for error in unclear}
    return [case for case in cases if case.name not in refused], errors


def _find_files(paths: Iterable[Path]) -> tuple[dict[Path, Path], list[SuiteError]]:
    """Resolved suite files, each with the path it was given by, and what could not be found."""
    files: dict[Path, Path] = {}
    errors: list[SuiteError] = []

    def report(path: Path, message: str, kind: str) -> None:
        errors.append(SuiteError(message, stage="import", kind=kind, source=path.as_posix()))

    for path in paths:
        try:
            for file in _files_of(path, report):
                files.setdefault(file.resolve(), file)
        except OSError as error:
            report(path, f"the suite cannot be read: {error.strerror}", "no-suite")
    return files, errors


def _files_of(path: Path, report: Callable[[Path, str, str], None]) -> list[Path]:
    """The suite files that one path stands for."""
    if path.is_dir():
        found = list(_suites_below(path, report))
        if not found:
            report(path, "no file in this folder is called bench_*.py or *_bench.py: name one so", "no-suite")
        return found
    if not path.exists():
        report(path, f"there is no such file or folder (looked from {Path.cwd()})", "no-suite")
        return []
    if path.suffix != ".py":
        report(path, "a suite is a Python file, and its name ends in .py", "no-suite")
        return []
    return [path]


def _suites_below(folder: Path, report: Callable[[Path, str, str], None]) -> Iterator[Path]:
    """Suite files in a folder and below, sorted, without hidden folders and virtual environments."""

    def unreadable(error: OSError) -> None:
        report(Path(error.filename), f"the folder cannot be read: {error.strerror}", "no-suite")

    for current, below, names in os.walk(folder, onerror=unreadable):
        if "pyvenv.cfg" in names:
            below.clear()
            continue
        below[:] = sorted(name for name in below if not name.startswith((".", "__")))
        yield from (Path(current, name) for name in sorted(names) if _SUITE_NAME.fullmatch(name))


def _load(suite: _Suite, folders: set[Path]) -> None:
    """Import one suite and make its cases; ``folders`` are those of the suites before it."""
    folder = suite.place.file.parent
    conflict = _conflicting_helper(folder, folders)
    if conflict is not None:
        suite.report(conflict, "conflicting-helper")
        return
    folders.add(folder)
    _put_first_on_path(folder)
    loaded = _import(suite)
    if loaded is None:
        return
    module, outline = loaded
    benchmarks = list(_benchmarks_of(suite, module, outline))
    if not benchmarks and not suite.errors:
        suite.report(
            f"the file defines no function called {PREFIX}*: nothing in it is measured", "no-benchmark"
        )
    _make_cases(suite, benchmarks, vars(module).get("PARAMS", {}), outline.params_line)


def _import(suite: _Suite) -> tuple[ModuleType, _Outline] | None:
    """Run a suite file as a module of a name of its own; None when that failed and is reported."""
    file = suite.place.file
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"kernelwatch_suite_{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{digest}"
    loader = SourceFileLoader(name, str(file))
    spec = ModuleSpec(name, loader, origin=str(file))
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, pickle and triton look a function's module up there
    try:
        source = file.read_bytes()
        # Compiled here and not by the loader: no cache is written into the checkout, none is trusted.
        exec(loader.source_to_code(source, str(file)), vars(module))  # noqa: S102 - running suites is the job
        return module, _Outline.of(source)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a suite may raise anything on import, SystemExit too
        suite.errors.append(from_exception(error, stage="import", place=suite.place))
        del sys.modules[name]
        return None


def _benchmarks_of(suite: _Suite, module: ModuleType, outline: _Outline) -> Iterator[_Benchmark]:
    """The usable benchmarks of a module; why others are not is reported."""
    for name, value in list(vars(module).items()):
        if not name.startswith(PREFIX) or not callable(value):
            continue
        if name not in outline.bound and getattr(value, "__module__", None) != module.__name__:
            continue  # imported: it belongs to the file it came from
        lines = outline.definitions.get(name) or [_line_of(value)]
        problem = _why_no_benchmark(name, value, lines)
        if problem is None:
            try:
                signature = parameters.Signature.of(value)
            except ValueError as error:
                problem = str(error)
            else:
                options = getattr(value, OPTIONS_ATTRIBUTE, Options())
                yield _Benchmark(name.removeprefix(PREFIX), value, lines[-1], options, signature)
                continue
        suite.report(f"{name} {problem}", "bad-benchmark", line=lines[-1], case=name.removeprefix(PREFIX))


def _why_no_benchmark(name: str, value: Any, lines: list[int]) -> str | None:
    if name == PREFIX:
        return "has no name: call it bench_ and what it measures"
    if len(lines) > 1:
        listed = " and ".join(str(line) for line in lines)
        return f"is defined on lines {listed}, and only the last would be measured: give each its own name"
    if not inspect.isfunction(value):
        return f"is a {type(value).__name__} and not a function: define it with `def`, or call it otherwise"
    function = inspect.unwrap(value)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "is an async function: write a plain `def` that returns the call to time"
    if inspect.isgeneratorfunction(function):
        return "is a generator: `return` the call to time, do not `yield` it"
    return None


def _make_cases(suite: _Suite, benchmarks: list[_Benchmark], declared: object, params_line: int) -> None:
    shared = parameters.read(declared, "PARAMS")
    for problem in shared.problems:
        suite.report(problem, "bad-parameters", line=params_line)
    sharing = [b for b in benchmarks if b.options.params is None]
    for name in shared.names:
        if benchmarks and not any(benchmark.signature.takes(name) for benchmark in sharing):
            suite.report(
                f"no benchmark takes {name!r} from PARAMS: take it out, or name it in a function's signature",
                "bad-parameters",
                line=params_line,
            )
    for benchmark in benchmarks:
        own = benchmark.options.params is not None
        declaration = parameters.read(benchmark.options.params, "params") if own else shared
        made, problems = parameters.expand(declaration, benchmark.signature, shared=not own)
        for problem in (*declaration.problems, *problems) if own else problems:
            suite.report(
                f"{PREFIX}{benchmark.name}: {problem}",
                "bad-parameters",
                line=benchmark.line,
                case=benchmark.name,
            )
        suite.cases.extend(_case(suite, benchmark, values) for values in made)


def _case(suite: _Suite, benchmark: _Benchmark, values: parameters.Parameters) -> BenchmarkCase:
    return BenchmarkCase(
        name=benchmark.name,
        parameters=values,
        function=benchmark.function,
        options=benchmark.options,
        suite=suite.given,
        place=suite.place.at(benchmark.line),
    )


def _ambiguous_names(cases: Iterable[BenchmarkCase]) -> list[SuiteError]:
    """One error for every benchmark that two files define: their numbers would mix in one series."""
    places: dict[str, dict[Path, str]] = {}
    for case in cases:
        places.setdefault(case.name, {}).setdefault(case.file, case.source)
    return [
        SuiteError(
            f"{PREFIX}{name} is defined in {' and in '.join(sources.values())}; their numbers would "
            "mix in one series, so none of them is measured: give each its own name",
            stage="import",
            kind="ambiguous-benchmark",
            source=list(sources.values())[-1],
            case=name,
        )
        for name, sources in places.items()
        if len(sources) > 1
    ]


def _contested_renames(cases: Iterable[BenchmarkCase]) -> list[SuiteError]:
    """One error for every benchmark whose earlier name another one claims too: a history has one heir."""
    heirs: dict[str, dict[str, str]] = {}
    for case in cases:
        if case.options.renamed_from is not None:
            heirs.setdefault(case.options.renamed_from, {}).setdefault(case.name, case.source)
    return [
        SuiteError(
            f"{' and '.join(f'{PREFIX}{heir} ({where})' for heir, where in sources.items())} are all renamed "
            f"from {PREFIX}{old}, and its history can be carried on by one alone, so none of them is "
            "measured: take renamed_from away from the others",
            stage="import",
            kind="contested-rename",
            source=source,
            case=name,
        )
        for old, sources in heirs.items()
        if len(sources) > 1
        for name, source in sources.items()
    ]


def _conflicting_helper(folder: Path, others: set[Path]) -> str | None:
    """Why a suite would get another suite folder's module under the name of its own, or None."""
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if origin is None or "." in name:
            continue
        file = Path(origin)
        home = file.parent.parent if file.name == "__init__.py" else file.parent
        if home in others and home != folder:
            own = next(
                (o for o in (folder / f"{name}.py", folder / name / "__init__.py") if o.is_file()), None
            )
            if own is not None:
                return (
                    f"{own.relative_to(folder).as_posix()} lies beside this suite, but {file} is already "
                    f"imported as {name!r}: give one of the two another name"
                )
    return None


def _line_of(function: Any) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return 1 if code is None else int(code.co_firstlineno)


def _put_first_on_path(folder: Path) -> None:
    entry = str(folder)
    while entry in sys.path:
        sys.path.remove(entry)
    sys.path.insert(0, entry)
