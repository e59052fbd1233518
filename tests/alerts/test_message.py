"""What is told: the answer, the order, the caveats, and text that no name can break out of."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from builders import a_failure, a_header, a_kernel, a_point, a_sha
from hypothesis import given
from hypothesis import strategies as st
from judgements import a_candidate, a_history, a_judgement, a_telling_judgement, excused

from alerts.markdown import BYTES_MAX, code, render_markdown
from alerts.message import Message, compose
from alerts.terminal import render_text
from store.records import Case, Outcome, Reason, Standing, Tier, Verdict

HOSTILE = "x|y`z`\n\n# @maintainers <img src=x> [l](http://evil) \x1b[31m\u202e&amp; *b* #12"


def told(*candidates: Any, **changes: Any) -> Message:
    return compose(a_judgement(*candidates, **changes))


def test_the_answer_counts_everything_worst_first() -> None:
    message = compose(a_telling_judgement())

    assert message.answer == (
        "2 regressed (2 confirmed), 1 improved (1 confirmed), 2 unchanged, 2 not measured"
    )
    assert message.subject == "000000000 against 20 runs up to 000000000 on NVIDIA H200, tier A"
    assert [row.benchmark for row in message.changed] == ["softmax", "top_k", "rms_norm"]


def test_a_confirmed_regression_stands_before_a_larger_flag() -> None:
    judgement = a_judgement(a_candidate(1.5), a_candidate(1.05, benchmark="top_k"))
    confirmed = [
        replace(v, standing=Standing.CONFIRMED) for v in judgement.verdicts if "top_k" in v.series.case.label
    ]

    message = compose(judgement.with_verdicts(confirmed))

    assert [row.benchmark for row in message.changed] == ["top_k", "softmax"]
    assert message.answer == "2 regressed (1 confirmed, 1 flagged)"


def test_where_nothing_changed_the_answer_says_how_small_a_slowdown_would_have_been_seen() -> None:
    message = told(a_candidate(), a_candidate(benchmark="matmul"))

    assert re.fullmatch(
        r"2 unchanged: no slowdown larger than 0\.\d\d % would have been missed", message.answer
    )


def test_one_insensitive_benchmark_is_told_apart_from_the_rest() -> None:
    quiet = [a_candidate(benchmark=f"b{i}") for i in range(3)]
    noisy = a_candidate(benchmark="noisy", between=0.02)

    message = told(*quiet, noisy)

    assert message.sensitivity is not None
    assert re.search(r"larger than \d\.\d\d % would have been missed, none larger than 0\.\d\d % in half",
                     message.sensitivity)  # fmt: skip


def test_nothing_is_promised_where_a_slowdown_could_not_have_been_seen() -> None:
    judgement = a_judgement(a_candidate())
    blind = [replace(verdict, smallest_seen=None) for verdict in judgement.verdicts]

    assert compose(judgement.with_verdicts(blind)).answer == "1 unchanged"


def test_a_run_without_any_number_says_so() -> None:
    judgement = replace(a_judgement(a_candidate()), judged=())

    assert compose(judgement).answer == "Nothing was measured"


def test_a_flag_says_what_settles_it_and_a_single_baseline_what_it_lacks() -> None:
    (flag,) = told(a_candidate(1.05)).caveats
    (provisional,) = told(a_candidate(1.05), history=(a_point(20),)).caveats

    assert flag.startswith("A flag was seen in one run")
    assert provisional.startswith("Provisional: a single baseline run")


def test_an_unchanged_benchmark_is_provisional_too_beside_a_single_run() -> None:
    (provisional,) = told(a_candidate(), history=(a_point(20),)).caveats

    assert provisional.startswith("Provisional: a single baseline run")
    assert told(a_candidate()).caveats == ()


def test_uncommitted_and_interrupted_runs_are_marked_and_get_no_command() -> None:
    message = told(a_candidate(header={"dirty": True, "interrupted": True}))

    assert message.subject.startswith("000000000 with uncommitted changes against")
    assert [caveat[:13] for caveat in message.caveats] == ["Measured with", "The run was e"]
    assert message.command is None


def test_a_machine_that_moved_is_the_first_caveat_and_sentinels_are_no_rows() -> None:
    sentinel = a_candidate(1.1, benchmark="sentinel_copy", tags=("sentinel",))

    message = told(a_candidate(1.05), sentinel)

    assert message.caveats[0].startswith("No verdict: the machine moved, not the code")
    assert message.answer == "1 inconclusive"
    assert [row.verdict.reason for row in message.inconclusive] == [Reason.MACHINE_MOVED]


def test_the_kernel_that_changed_is_named_on_a_change_and_only_there() -> None:
    slower = a_candidate(1.05, kernels=(a_kernel(registers=96),))
    same = a_candidate(benchmark="matmul", kernels=(a_kernel(registers=96),))

    message = told(slower, same)

    assert [(k.name, k.what) for k in message.changed[0].kernels] == [
        ("softmax_warp_forward", "registers 40 -> 96")
    ]
    assert message.unchanged[0].kernels == ()


def test_the_command_measures_the_five_worst_again_from_the_same_suites() -> None:
    candidates = [
        a_candidate(1.1 + i / 100, benchmark=f"b{i}", header={"suites": ("builtin", "my suite.py")})
        for i in range(7)
    ]

    message = told(*candidates)

    assert message.command == (
        f"collect --commit {a_sha(21)} --suite 'my suite.py' "
        "--only b6 --only b5 --only b4 --only b3 --only b2"
    )
    assert "Measure the worst 5 of 7 benchmarks again:" in render_text(message)
    assert "**Measure the worst 5 of 7 benchmarks again**" in render_markdown(message)


def test_a_name_with_glob_and_shell_characters_stays_one_word() -> None:
    message = told(a_candidate(1.1, benchmark="a*b; rm -rf $HOME"))

    assert message.command is not None
    assert message.command.endswith("--only 'a[*]b; rm -rf $HOME'")


def test_a_name_with_shell_characters_can_be_accepted_as_the_comment_says() -> None:
    markdown = render_markdown(told(a_candidate(1.1, benchmark="open(x) $HOME"), confirmed=True))

    assert f"`alerts triage accept 'open(x) $HOME' --at {a_sha(21)[:9]}`" in markdown


def test_a_suite_that_could_not_be_imported_is_named_by_its_source() -> None:
    message = told(a_candidate(), failures=(a_failure(case=None, source="suites/bad.py:3"),))

    assert message.not_measured[0].label == "suites/bad.py:3"
    assert message.not_measured[0].quoted == "ValueError: shapes do not match"


def test_rows_that_are_inconclusive_for_one_reason_are_told_together() -> None:
    text = render_text(told(*[a_candidate(benchmark=f"b{i}") for i in range(12)], history=()))

    assert text.count("Inconclusive, no-baseline (12):") == 1
    assert " and 2 more" in text


def test_the_comment_begins_with_the_answer_then_the_worst_and_what_to_do() -> None:
    lines = render_markdown(compose(a_telling_judgement())).splitlines()

    assert lines[0].startswith("### 2 regressed (2 confirmed), 1 improved")
    assert re.fullmatch(
        r"`softmax\[rows=1024\]` is \*\*8\.\d+ % slower\*\* \(95 %: [\d.]+ % to [\d.]+ %\), "
        r"confirmed in a fresh session\. The table has 2 more\.",
        lines[2],
    )
    assert lines[6].startswith("**What to do:** find out why;")
    assert f"`alerts triage accept softmax --at {a_sha(21)[:9]}`" in lines[6]


def hostile_message() -> Message:
    return compose(
        replace(
            excused(
                a_judgement(
                    a_candidate(1.08, benchmark=HOSTILE, kernels=(a_kernel(name=HOSTILE, registers=9),)),
                    a_candidate(1.0, benchmark=f"same {HOSTILE}"),
                    a_candidate(benchmark="poor", tier=Tier.C, tier_evidence=(HOSTILE,)),
                    failures=(a_failure(message=HOSTILE, kind=HOSTILE),),
                    header=a_header(21, gpu_name=HOSTILE, merge_base=a_sha(20)),
                ),
                HOSTILE,
            ),
            missing=(Case.of(HOSTILE, {HOSTILE: HOSTILE}),),
        )
    )


def without_code(markdown: str) -> str:
    """What GitHub would interpret: the comment without its fenced block, code spans and own markup."""
    text = re.sub(r"(?s)(`{3,})sh\n.*?\n\1\n", "", markdown)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.sub(r"</?(details|summary)>|<!-- kernelwatch[^>]*-->", "", text)


def test_nothing_from_a_benchmark_is_markup_a_mention_or_a_link() -> None:
    outside = without_code(render_markdown(hostile_message()))

    assert "`" not in outside
    assert "<" not in outside
    assert "[" not in outside
    assert "://" not in outside
    rendered = unescape(outside)  # GitHub looks for mentions and issue numbers in this
    assert re.search(r"[@#]\w", rendered) is None
    assert "@\u200bmaintainers" in rendered


def test_every_table_row_has_seven_cells_whatever_a_name_holds() -> None:
    lines = render_markdown(hostile_message()).splitlines()

    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 6
    assert {line.count("|") for line in rows} == {8}


def test_no_line_starts_that_a_benchmark_wrote() -> None:
    plain = render_markdown(compose(a_telling_judgement()))
    ours = r"$|### |Times are |`(same )?x|`softmax|0{9}|\*\*|\||- |> |<details>|</details>|```|collect "
    allowed = re.compile(ours)

    for line in (*plain.splitlines(), *render_markdown(hostile_message()).splitlines()):
        assert allowed.match(line), line


@given(st.text(max_size=300))
def test_a_code_span_holds_any_text_on_one_line(text: str) -> None:
    span = code(text)

    assert re.fullmatch(r"`[^`|\r\n]+`", span)
    assert span.isprintable()


def test_control_and_direction_characters_are_shown_and_not_obeyed() -> None:
    text = render_text(hostile_message())

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[31m\u202e" in text


def many(outcome: Outcome, number: int) -> Message:
    """A message of many rows, made from one real verdict."""
    message = told(a_candidate(1.08, benchmark="b" * 150))
    row = message.changed[0]

    def verdict(index: int) -> Verdict:
        return replace(row.verdict, outcome=outcome, effect=1 - index / number)

    rows = tuple(replace(row, label=f"{i:05d}-{row.label}", verdict=verdict(i)) for i in range(number))
    return replace(message, changed=rows, unchanged=rows)


@pytest.mark.parametrize("number", [1, 150, 2000])
def test_the_comment_stays_within_its_length(number: int) -> None:
    markdown = render_markdown(many(Outcome.REGRESSED, number))

    assert len(markdown.encode()) <= BYTES_MAX
    assert "00000-" in markdown


def test_what_does_not_fit_is_counted_and_the_worst_stays() -> None:
    markdown = render_markdown(many(Outcome.REGRESSED, 2000))

    shown = [line for line in markdown.splitlines() if line.startswith("| `")]
    counted = re.findall(r"^and (\d+) more that do not fit here$", markdown, re.MULTILINE)
    assert 100 < len(shown) < 2000
    assert shown[0].startswith("| `00000-")
    assert [int(n) for n in counted] == [2000 - len(shown), 2000]
    assert "collect --commit" in markdown


def test_a_wide_script_counts_by_its_bytes() -> None:
    message = told(*[a_candidate(1.08, benchmark="\u6f22" * 60 + str(i)) for i in range(3)])
    wide = replace(message, changed=message.changed * 300)

    assert len(render_markdown(wide).encode()) <= BYTES_MAX


def test_a_history_with_two_sorts_of_baseline_names_the_commoner() -> None:
    message = told(
        a_candidate(), a_candidate(benchmark="b"), a_candidate(benchmark="c"),
        history=(*a_history(), *a_history(benchmark="b"), a_point(20, benchmark="c")),
    )  # fmt: skip

    assert "against 20 runs up to" in message.subject
