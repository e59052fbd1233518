"""Finding benchmarks: which there are, with which parameters, and what is said about the others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from suite_files import a_suite_file, loaded, the_case, the_error

from collector.suite import SuiteError, load_suites, set_up
from store.records import Case

GOOD = "def bench_good():\n    return lambda: 1\n"


@pytest.fixture(autouse=True)
def _import_path_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())


def labels(root: Path, source: str) -> list[str]:
    cases, errors = loaded(root, source)
    assert errors == []
    return [case.label for case in cases]


# What is found


def test_benchmarks_come_in_the_order_of_their_definition(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        """
        def bench_zebra(): return lambda: 1
        def bench_ant(): return lambda: 1
        def not_one(): return lambda: 1
        bench_size = 3
        """,
    )

    assert found == ["zebra", "ant"]


def test_each_benchmark_gets_the_product_over_the_names_it_takes(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        """
        PARAMS = {"rows": [1, 2], "dtype": ["half", "float"]}
        def bench_both(rows, dtype): return lambda: 1
        def bench_one(rows): return lambda: 1
        def bench_none(): return lambda: 1
        """,
    )

    assert found == [
        "both[dtype=half, rows=1]", "both[dtype=float, rows=1]",
        "both[dtype=half, rows=2]", "both[dtype=float, rows=2]",
        "one[rows=1]", "one[rows=2]", "none",
    ]  # fmt: skip


def test_a_list_of_dictionaries_gives_the_cases_one_by_one(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        """
        PARAMS = [{"rows": 1, "cols": 9}, {"rows": 1, "cols": 8}, {"rows": 2, "cols": 9}]
        def bench_both(rows, cols): return lambda: 1
        def bench_one(rows): return lambda: 1
        """,
    )

    assert found == [
        "both[cols=9, rows=1]", "both[cols=8, rows=1]", "both[cols=9, rows=2]",
        "one[rows=1]", "one[rows=2]",
    ]  # fmt: skip


def test_the_decorator_replaces_the_parameters_of_the_file(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        """
        from collector.suite import benchmark
        PARAMS = {"rows": [1]}
        @benchmark(params={"cols": [7, 8]})
        def bench_own(cols): return lambda: 1
        def bench_shared(rows): return lambda: 1
        """,
    )

    assert found == ["own[cols=7]", "own[cols=8]", "shared[rows=1]"]


def test_a_default_stands_in_for_a_name_that_is_not_given(tmp_path: Path) -> None:
    case = the_case(tmp_path, "def bench_x(rows=5):\n    return lambda: rows\n")

    assert case.label == "x"
    assert set_up(case)() == 5


def test_a_function_that_takes_anything_gets_every_name(tmp_path: Path) -> None:
    source = 'PARAMS = {"rows": [1], "cols": [2]}\ndef bench_x(**sizes):\n    return lambda: sizes\n'

    assert set_up(the_case(tmp_path, source))() == {"rows": 1, "cols": 2}


def test_numbers_that_python_calls_equal_are_cases_of_their_own(tmp_path: Path) -> None:
    found = labels(tmp_path, 'PARAMS = {"v": [1, 1.0, True, None]}\ndef bench_x(v): return lambda: 1\n')

    assert found == ["x[v=1]", "x[v=1.0]", "x[v=True]", "x[v=None]"]


def test_imported_benchmarks_belong_to_the_file_they_came_from(tmp_path: Path) -> None:
    a_suite_file(tmp_path, "def bench_theirs(): return lambda: 1\n", "benches/discovery_imported.py")
    file = a_suite_file(
        tmp_path,
        """
        from discovery_imported import *
        from discovery_imported import bench_theirs as bench_again
        def bench_ours(): return lambda: 1
        """,
        "benches/bench_ours.py",
    )

    cases, errors = load_suites([file], root=tmp_path)

    assert [case.label for case in cases] == ["ours"]
    assert errors == []


def test_a_decorator_that_forgets_where_a_function_came_from_does_not_hide_it(tmp_path: Path) -> None:
    a_suite_file(
        tmp_path,
        "def careless(function):\n    def wrapper():\n        return function()\n    return wrapper\n",
        "benches/discovery_careless.py",
    )
    file = a_suite_file(
        tmp_path,
        """
        from discovery_careless import careless
        @careless
        def bench_wrapped(): return lambda: 1
        """,
        "benches/bench_wrapped.py",
    )

    (case,), errors = load_suites([file], root=tmp_path)

    assert (case.label, case.line) == ("wrapped", 4)
    assert errors == []


def test_a_case_says_where_it_is_defined_and_has_the_label_the_store_gives_it(tmp_path: Path) -> None:
    file = a_suite_file(
        tmp_path,
        """
        from collector.suite import benchmark
        @benchmark(params=[{"rows": 4, "dtype": "half"}], tags=["memory"])
        def bench_softmax(rows, dtype): return lambda: 1
        """,
        "benches/attention/softmax_bench.py",
    )

    (case,), _ = load_suites([file], root=tmp_path)

    assert case.source == "benches/attention/softmax_bench.py:4"
    assert case.label == Case.of(case.name, case.parameters).label == "softmax[dtype=half, rows=4]"
    assert case.key == '["softmax",{"dtype":"half","rows":4}]'
    assert (case.suite, case.file, case.line) == (file, file, 4)
    assert case.options.tags == ("memory",)


def test_a_file_outside_the_root_is_shown_by_its_whole_path(tmp_path: Path) -> None:
    file = a_suite_file(tmp_path / "elsewhere", GOOD)
    (tmp_path / "repository").mkdir()

    (case,), _ = load_suites([file], root=tmp_path / "repository")

    assert case.source == f"{file}:1"


# Files and folders


def test_a_folder_stands_for_the_suites_in_it_and_below(tmp_path: Path) -> None:
    for name in (
        "b/bench_one.py", "b/deep/two_bench.py", "b/helper.py", "b/.cache/bench_three.py",
        "b/venv/bench_four.py", "b/__pycache__/bench_five.py",
    ):  # fmt: skip
        stem = Path(name).stem.replace("bench_", "").replace("_bench", "")
        a_suite_file(tmp_path, f"def bench_{stem}(): return lambda: 1\n", name)
    (tmp_path / "b/venv/pyvenv.cfg").touch()

    cases, errors = load_suites([tmp_path / "b"], root=tmp_path)

    assert [case.label for case in cases] == ["one", "two"]
    assert errors == []


def test_a_file_given_twice_is_loaded_once(tmp_path: Path) -> None:
    file = a_suite_file(tmp_path, GOOD)

    cases, errors = load_suites([file, tmp_path, file], root=tmp_path)

    assert [case.label for case in cases] == ["good"]
    assert errors == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "there is no such file or folder"),
        ("empty", "no file in this folder is called bench_*.py or *_bench.py"),
        ("notes.txt", "a suite is a Python file"),
    ],
)
def test_a_path_that_is_no_suite_is_reported_and_the_others_run(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    good = a_suite_file(tmp_path, GOOD)

    cases, (error,) = load_suites([tmp_path / name, good], root=tmp_path)

    assert [case.label for case in cases] == ["good"]
    assert message in error.message
    assert (error.stage, error.kind, error.source) == ("import", "no-suite", str(tmp_path / name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_reported_and_the_others_run(tmp_path: Path) -> None:
    a_suite_file(tmp_path, GOOD, "b/bench_good.py")
    a_suite_file(tmp_path, GOOD, "b/bench_secret.py").chmod(0)
    a_suite_file(tmp_path, GOOD, "b/closed/bench_inside.py")
    closed = tmp_path / "b" / "closed"
    closed.chmod(0)

    cases, errors = load_suites([tmp_path / "b", closed / "bench_inside.py"], root=tmp_path)

    assert [case.label for case in cases] == ["good"]
    assert [(error.source, error.message) for error in errors] == [
        (str(closed), "the folder cannot be read: Permission denied"),
        (str(closed / "bench_inside.py"), "the suite cannot be read: Permission denied"),
        ("b/bench_secret.py:1", f"[Errno 13] Permission denied: '{tmp_path}/b/bench_secret.py'"),
    ]


def test_a_file_without_a_benchmark_is_reported(tmp_path: Path) -> None:
    error = the_error(tmp_path, "def softmax(): return lambda: 1\n")

    assert error.kind == "no-benchmark"
    assert "defines no function called bench_*" in error.message


# Importing


def test_the_root_its_src_and_the_suites_own_folder_are_importable_then_and_later(tmp_path: Path) -> None:
    a_suite_file(tmp_path, "VALUE = 1\n", "discovery_root_module.py")
    a_suite_file(tmp_path, "VALUE = 20\n", "src/discovery_src_package/__init__.py")
    a_suite_file(tmp_path, "VALUE = 300\n", "benches/discovery_helper.py")
    file = a_suite_file(
        tmp_path,
        """
        import discovery_root_module, discovery_src_package
        def bench_sum():
            import discovery_helper
            total = discovery_root_module.VALUE + discovery_src_package.VALUE + discovery_helper.VALUE
            return lambda: total
        """,
        "benches/bench_sum.py",
    )

    (case,), errors = load_suites([file], root=tmp_path)

    assert errors == []
    assert set_up(case)() == 321


def test_loading_twice_puts_no_folder_on_the_path_twice(tmp_path: Path) -> None:
    file = a_suite_file(tmp_path, GOOD, "benches/bench_good.py")

    load_suites([file], root=tmp_path)
    load_suites([file], root=tmp_path)

    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path.count(str(tmp_path / "benches")) == 1


def test_a_suite_never_gets_the_helper_of_another_folder(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        a_suite_file(tmp_path, f"NAME = {folder!r}\n", f"{folder}/discovery_common.py")
        a_suite_file(
            tmp_path,
            f"import discovery_common\ndef bench_{folder}(): return lambda: discovery_common.NAME\n",
            f"{folder}/bench_{folder}.py",
        )

    cases, (error,) = load_suites([tmp_path / "a", tmp_path / "b"], root=tmp_path)

    assert [(case.label, set_up(case)()) for case in cases] == [("a", "a")]
    assert error.source == "b/bench_b.py:1"
    assert "already imported as 'discovery_common': give one of the two another name" in error.message


def test_two_suites_of_the_same_name_stand_apart(tmp_path: Path) -> None:
    a_suite_file(tmp_path, "X = 1\ndef bench_one(): return lambda: X\n", "a/bench_same.py")
    a_suite_file(tmp_path, "X = 2\ndef bench_two(): return lambda: X\n", "b/bench_same.py")

    cases, errors = load_suites([tmp_path], root=tmp_path)

    assert errors == []
    assert [set_up(case)() for case in cases] == [1, 2]


def test_dataclasses_and_pickle_work_in_a_suite(tmp_path: Path) -> None:
    case = the_case(
        tmp_path,
        """
        from __future__ import annotations
        import dataclasses, pickle
        @dataclasses.dataclass
        class Shape:
            rows: dataclasses.InitVar[int]
        def bench_x(): return lambda: type(pickle.loads(pickle.dumps(Shape(1)))) is Shape
        """,
    )

    assert set_up(case)() is True


def test_importing_leaves_no_cache_in_the_checkout(tmp_path: Path) -> None:
    loaded(tmp_path, GOOD)

    assert [path.name for path in tmp_path.iterdir()] == ["bench_example.py"]


def test_a_syntax_error_is_reported_with_its_line(tmp_path: Path) -> None:
    error = the_error(tmp_path, "x = 1\ndef bench_x(:\n    pass\n")

    assert (error.stage, error.kind, error.source) == ("import", "SyntaxError", "bench_example.py:2")
    assert "def bench_x(:" in error.log
    assert "discovery.py" not in error.log


def test_an_exception_while_importing_is_reported_with_its_line_and_traceback(tmp_path: Path) -> None:
    error = the_error(
        tmp_path,
        """
        def broken():
            raise ValueError("no such size")
        broken()
        """,
    )

    assert (error.stage, error.kind, error.source) == ("import", "ValueError", "bench_example.py:3")
    assert error.message == "no such size"
    assert error.log.startswith("Traceback")
    assert "discovery.py" not in error.log


def test_an_error_inside_a_helper_points_at_the_line_of_the_suite(tmp_path: Path) -> None:
    a_suite_file(tmp_path, "raise OSError('disk on fire')\n", "discovery_broken_helper.py")

    error = the_error(tmp_path, "\n\nimport discovery_broken_helper\n")

    assert (error.kind, error.source, error.message) == ("OSError", "bench_example.py:3", "disk on fire")
    assert "discovery_broken_helper.py" in error.log


def test_a_missing_module_is_reported_with_the_interpreter_that_misses_it(tmp_path: Path) -> None:
    error = the_error(tmp_path, "import no_such_module_anywhere\n")

    assert error.kind == "ModuleNotFoundError"
    assert error.message == (
        f"No module named 'no_such_module_anywhere' in {sys.executable}: "
        "install it there, or choose another interpreter with --python"
    )


def test_a_relative_import_is_answered_with_what_to_write(tmp_path: Path) -> None:
    error = the_error(tmp_path, "from . import helper\n")

    assert "so write `import name` for a file beside it" in error.message


def test_a_suite_that_exits_is_reported_and_the_others_run(tmp_path: Path) -> None:
    leaver = a_suite_file(tmp_path, "import sys\nsys.exit(3)\n", "bench_leaver.py")
    good = a_suite_file(tmp_path, GOOD, "bench_good.py")

    cases, (error,) = load_suites([leaver, good], root=tmp_path)

    assert [case.label for case in cases] == ["good"]
    assert (error.kind, error.source) == ("SystemExit", "bench_leaver.py:2")
    assert "exit code 3" in error.message
    assert '__name__ == "__main__"' in error.message


def test_ctrl_c_while_importing_is_no_fault_of_the_suite(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        loaded(tmp_path, "raise KeyboardInterrupt\n")


def test_an_exception_whose_text_cannot_be_read_is_reported_all_the_same(tmp_path: Path) -> None:
    error = the_error(
        tmp_path,
        """
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError
        raise Mute
        """,
    )

    assert (error.kind, error.message) == ("Mute", "its message could not be read")


def test_a_long_message_is_cut_to_its_first_paragraph(tmp_path: Path) -> None:
    error = the_error(tmp_path, 'raise ValueError("what\\nhappened\\n\\n" + "frame " * 1000)\n')
    longer = the_error(tmp_path, 'raise ValueError("x" * 5000)\n')

    assert error.message == "what happened"
    assert len(longer.message) == 1001
    assert longer.message.endswith("x…")


# Functions that cannot be benchmarks


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("async def bench_bad(): return None", 1, "is an async function"),
        ("async def bench_bad(): yield None", 1, "is an async function"),
        ("def bench_bad():\n    yield 1", 1, "is a generator: `return` the call to time"),
        ("\nclass bench_bad:\n    pass", 1, "is a type and not a function"),
        ("import functools\nbench_bad = functools.partial(print)", 1, "is a partial and not a function"),
        ("\n\ndef bench_bad(rows, /): return print", 3, "take the `/` out of the signature"),
        ("def bench_(): return print", 1, "has no name"),
        (
            "def bench_bad(): return print\ndef bench_bad(): return print",
            2,
            "is defined on lines 1 and 2, and only the last would be measured",
        ),
    ],
)
def test_what_cannot_be_a_benchmark_is_reported_and_the_others_run(
    tmp_path: Path, source: str, line: int, message: str
) -> None:
    cases, (error,) = loaded(tmp_path, f"{source}\n\n{GOOD}")

    assert [case.label for case in cases] == ["good"]
    assert message in error.message
    assert (error.stage, error.kind, error.source) == ("import", "bad-benchmark", f"bench_example.py:{line}")
    assert error.case in ("bad", "")


# Parameters that cannot be used


@pytest.mark.parametrize(
    ("params", "left", "message"),
    [
        ('{"rows": [1], "colz": [2]}', ["x[rows=1]"], "no benchmark takes 'colz' from PARAMS"),
        ('{"rows": [1, object]}', ["x[rows=1]"], "PARAMS['rows'] holds <class 'object'> of type type"),
        ('{"rows": [1, float("nan")]}', ["x[rows=1]"], "PARAMS['rows'] holds nan: use a finite number"),
        ('{"rows": [1, [2]]}', ["x[rows=1]"], "PARAMS['rows'] holds [2] of type list"),
        ('{"rows": [1, 2, 1]}', ["x[rows=1]", "x[rows=2]"], "PARAMS['rows'] holds 1 twice"),
        ('{"rows": [1], 5: [2]}', ["x[rows=1]"], "PARAMS has the name 5"),
        ('{"rows": [1], "a b": [2]}', ["x[rows=1]"], "PARAMS has the name 'a b'"),
        ('[{"rows": 1}, 7]', ["x[rows=1]"], "PARAMS[1] is 7 of type int, not a dictionary"),
        ('[{"rows": 1}, {"rows": []}]', ["x[rows=1]"], "PARAMS[1] gives rows [] of type list"),
        ('[{"rows": 1}, {"rows": 2}, {"rows": 1}]', ["x[rows=1]", "x[rows=2]"], "PARAMS[2] repeats case 0"),
        ('[{"rows": 1}, {"row s": 1}]', ["x[rows=1]"], "PARAMS[1] has the name 'row s'"),
        ('[{"rows": 1}, {"rows": 2, "colz": 3}]', ["x[rows=1]", "x[rows=2]"], "takes 'colz'"),
    ],
)  # fmt: skip
def test_a_bad_parameter_costs_its_own_cases_alone(
    tmp_path: Path, params: str, left: list[str], message: str
) -> None:
    cases, (error,) = loaded(tmp_path, f"\nPARAMS = {params}\ndef bench_x(rows): return lambda: 1\n")

    assert [case.label for case in cases] == left
    assert message in error.message
    assert (error.stage, error.kind, error.source) == ("import", "bad-parameters", "bench_example.py:2")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ('{"rows": []}', "PARAMS['rows'] is empty"),
        ('{"rows": 8}', "PARAMS['rows'] is 8 of type int, not a list: write [8]"),
        ('{"rows": "half"}', "PARAMS['rows'] is 'half' of type str, not a list: write ['half']"),
        ('{"rows": {1, 2}}', "PARAMS['rows'] is {1, 2} of type set, not a list: use a list"),
        ('{"rows": [object]}', "PARAMS['rows'] holds"),
        ("[]", "PARAMS is an empty list"),
        ("[1]", "PARAMS[0] is 1 of type int, not a dictionary"),
        ("3", "PARAMS is 3 of type int"),
    ],
)
def test_a_benchmark_without_a_usable_value_is_listed_and_the_others_run(
    tmp_path: Path, params: str, message: str
) -> None:
    cases, (cause, consequence) = loaded(
        tmp_path, f"PARAMS = {params}\n{GOOD}def bench_x(rows=5): return lambda: 1\n"
    )

    assert [case.label for case in cases] == ["good"]
    assert message in cause.message
    assert cause.source == "bench_example.py:1"
    assert (consequence.case, consequence.source) == ("x", "bench_example.py:4")
    assert "see PARAMS" in consequence.message


def test_a_name_without_value_or_default_is_reported(tmp_path: Path) -> None:
    cases, (error,) = loaded(tmp_path, f"{GOOD}def bench_x(rows): return lambda: 1\n")

    assert [case.label for case in cases] == ["good"]
    assert (error.source, error.case) == ("bench_example.py:3", "x")
    assert error.message == (
        "bench_x: nothing in PARAMS gives 'rows': add it there, or give it a default in the function"
    )


def test_a_listed_case_that_lacks_a_name_is_reported_and_the_others_run(tmp_path: Path) -> None:
    cases, (error,) = loaded(
        tmp_path, 'PARAMS = [{"rows": 1}, {}, {"rows": 2}]\ndef bench_x(rows): return lambda: 1\n'
    )

    assert [case.label for case in cases] == ["x[rows=1]", "x[rows=2]"]
    assert "nothing in PARAMS[1] gives 'rows'" in error.message


def test_a_decorator_that_gives_a_name_the_function_does_not_take_is_reported(tmp_path: Path) -> None:
    source = """
        from collector.suite import benchmark
        @benchmark(params={"rows": [1], "colz": [1]})
        def bench_x(rows): return lambda: 1
        """

    cases, (error,) = loaded(tmp_path, source)

    assert cases == []
    assert error.message == "bench_x: params gives 'colz', which the function does not take"


def test_a_name_that_two_suites_define_is_measured_in_neither(tmp_path: Path) -> None:
    one = a_suite_file(tmp_path, GOOD + "def bench_one(): return lambda: 1\n", "bench_one.py")
    two = a_suite_file(tmp_path, "\n" + GOOD + "def bench_two(): return lambda: 1\n", "bench_two.py")

    cases, (error,) = load_suites([one, two], root=tmp_path)

    assert [case.label for case in cases] == ["one", "two"]
    assert (error.kind, error.case, error.source) == ("ambiguous-benchmark", "good", "bench_two.py:2")
    assert "bench_good is defined in bench_one.py:1 and in bench_two.py:2" in error.message


def test_an_earlier_name_that_two_benchmarks_claim_is_refused_with_both_places(tmp_path: Path) -> None:
    header = "from collector.suite import benchmark\n"
    heir = "@benchmark(params={{'rows': [1, 2]}}, renamed_from={!r})\ndef bench_{}(rows): return print\n"
    one, two = tmp_path / "bench_one.py", tmp_path / "bench_two.py"
    one.write_text(header + heir.format("bench_old", "fast") + heir.format("bench_other", "sole"))
    two.write_text(GOOD + header + heir.format("old", "exact"))

    cases, errors = load_suites([one, two], root=tmp_path)

    assert [case.label for case in cases] == ["sole[rows=1]", "sole[rows=2]", "good"]
    assert [(error.kind, error.case, error.source) for error in errors] == [
        ("contested-rename", "fast", "bench_one.py:3"),
        ("contested-rename", "exact", "bench_two.py:5"),
    ]
    for error in errors:
        assert (
            "bench_fast (bench_one.py:3) and bench_exact (bench_two.py:5) are all renamed from bench_old"
            in error.message
        )


# The decorator


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ("(flops='many')", "TypeError", "flops is 'many': give the amount of one call"),
        ("(flops=True)", "TypeError", "flops is True"),
        ("(bytes_moved=-1)", "TypeError", "bytes_moved is -1"),
        ("(tags='memory')", "TypeError", "tags is 'memory': give a list of words"),
        ("(tags=[''])", "TypeError", "tags is ['']"),
        ("(warm_cache='no')", "TypeError", "warm_cache is 'no': give True or False"),
        ("(time_limit_s=0)", "ValueError", "time_limit_s is 0: give seconds above 0"),
        ("(iterations=2.5)", "ValueError", "iterations is 2.5: give a whole number of at least 1"),
        ("(warmup_calls=0)", "ValueError", "warmup_calls is 0"),
        ("(renamed_from='the old one')", "ValueError", "give the name of the function before"),
        ("(renamed_from=3)", "ValueError", "renamed_from is 3"),
        ("(renamed_from='bench_good')", "ValueError", "bench_good cannot be renamed from itself"),
        ("(flop=1)", "TypeError", "unexpected keyword argument 'flop'"),
        ("", "TypeError", "write @benchmark(...) with parentheses"),
    ],
)
def test_a_wrong_argument_of_the_decorator_is_reported_where_it_stands(
    tmp_path: Path, arguments: str, kind: str, message: str
) -> None:
    source = f"from collector.suite import benchmark\n@benchmark{arguments}\n{GOOD}"

    error = the_error(tmp_path, source)

    assert (error.kind, error.source) == (kind, "bench_example.py:2")
    assert message in error.message


def test_a_decorated_function_that_nobody_would_run_is_refused(tmp_path: Path) -> None:
    error = the_error(
        tmp_path, "from collector.suite import benchmark\n@benchmark()\ndef softmax(): return print\n"
    )

    assert "call it bench_softmax" in error.message


def test_something_else_than_a_function_is_refused(tmp_path: Path) -> None:
    error = the_error(tmp_path, "from collector.suite import benchmark\nbench_x = benchmark()(3)\n")

    assert error.message == "@benchmark(...) decorates a function, not 3"


def amount(tmp_path: Path, flops: str, params: str = '[{"rows": 3, "dtype": "half"}]') -> float | None:
    source = f"""
        import math
        from collector.suite import benchmark
        @benchmark(params={params}, flops={flops})
        def bench_x(rows, dtype): return lambda: 1
        """
    return the_case(tmp_path, source).flops()


@pytest.mark.parametrize(
    ("flops", "expected"),
    [
        ("None", None),
        ("7", 7.0),
        ("lambda rows: 2 * rows", 6.0),
        ("lambda **parameters: len(parameters)", 2.0),
        ("lambda: 5", 5.0),
    ],
)
def test_work_is_a_number_or_a_function_of_the_parameters_it_names(
    tmp_path: Path, flops: str, expected: float | None
) -> None:
    assert amount(tmp_path, flops) == expected


@pytest.mark.parametrize(
    ("flops", "message"),
    [
        ("lambda rows: 1 // 0", "flops: integer division or modulo by zero"),
        ("lambda cols: cols", "flops: <lambda>() missing 1 required positional argument: 'cols'"),
        ("lambda rows: 'many'", "flops gave 'many': return the amount of one call"),
        ("lambda rows: -1", "flops gave -1"),
        ("lambda rows: math.inf", "flops gave inf"),
    ],
)
def test_work_that_cannot_be_told_is_an_error_of_the_case(tmp_path: Path, flops: str, message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        amount(tmp_path, flops)

    assert message in caught.value.message
    assert (caught.value.stage, caught.value.case) == ("setup", "x[dtype=half, rows=3]")
    assert caught.value.source.startswith("bench_example.py:")
    assert caught.value.__context__ is None


def test_an_error_reads_as_where_who_and_what(tmp_path: Path) -> None:
    found = the_error(tmp_path, "def bench_x(rows): return lambda: 1\n")
    with pytest.raises(SuiteError) as caught:
        amount(tmp_path, "lambda: -1")

    assert str(found).startswith("bench_example.py:1: bench_x: nothing in PARAMS gives 'rows'")
    assert str(caught.value).startswith("bench_example.py:5: x[dtype=half, rows=3]: flops gave -1")
