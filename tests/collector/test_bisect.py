"""The search for a commit: an oracle says what each comparison would give."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from builders import a_commit, a_header, a_run, a_sha, a_verdict
from hypothesis import given
from hypothesis import strategies as st

from collector.bisect import MORE_PASSES, Answer, Bisection, Finding, Says, Search, says_of
from collector.bisect_report import bisect_json, bisect_text
from store.records import BaselineKind, Outcome, Reason, Timer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.records import Commit, SeriesKey, Verdict

GOOD = a_commit(100)
SIGHT = 0.008  # the smallest change that the oracle's comparisons see


def verdict(effect: float, *, sight: float | None = SIGHT, passing: Reason | None = None) -> Verdict:
    """What the judge says of a candidate that is so much slower than what it was measured beside."""
    outcome = Outcome.UNCHANGED
    if sight is None or abs(effect) > sight:
        outcome = Outcome.REGRESSED if effect > 0 else Outcome.IMPROVED
    if passing is not None:
        outcome = Outcome.INCONCLUSIVE
    return a_verdict(
        outcome=outcome,
        reason=passing or Reason.PAIRS_DIFFER,
        message=f"{effect:+.3f}",
        baseline_kind=BaselineKind.PAIRED,
        effect=effect,
        effect_low=effect - 0.001,
        effect_high=effect + 0.001,
        smallest_seen=sight,
    )


@dataclass
class Oracle:
    """Answers comparisons, by how much slower each commit is than the good one.

    Attributes:
        slower: by commit number; of those not named it is that of the commit before.
        broken: numbers of commits that give no number.
        moving: numbers of commits beside which the machine moves until there are enough passes.
        interrupt_at: the comparison at which somebody interrupts.
    """

    slower: Mapping[int, float]
    broken: frozenset[int] = frozenset()
    moving: frozenset[int] = frozenset()
    sharp_from: int = 8
    interrupt_at: int | None = None
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def __call__(self, commit: Commit, base: Commit, passes: int, series: SeriesKey | None) -> Answer:
        del series
        if len(self.asked) == self.interrupt_at:
            raise KeyboardInterrupt
        number, other = int(commit.sha, 16), int(base.sha, 16)
        self.asked.append((number, other, passes))
        if number in self.broken:
            return Answer(commit, base, passes, None, reason="it does not build")
        effect = (1 + self._level(number)) / (1 + self._level(other)) - 1
        if number in self.moving and passes < self.sharp_from:
            return Answer(commit, base, passes, verdict(effect, passing=Reason.MACHINE_MOVED))
        return Answer(commit, base, passes, verdict(effect), run_ids=(a_header(number).run_id,))

    def _level(self, number: int) -> float:
        return next((self.slower[n] for n in range(number, 100, -1) if n in self.slower), 0.0)


def bisect(oracle: Oracle, length: int = 16, *, passes: int = 8) -> Search:
    line = [a_commit(number) for number in range(101, 101 + length)]
    return Bisection(oracle, passes=passes, note=lambda _text: None).search(GOOD, line)


def numbers(search: Search) -> list[int]:
    return [int(commit.sha, 16) for commit in search.candidates]


@given(st.integers(1, 40), st.data(), st.sampled_from([0.04, -0.04]))
def test_a_step_is_found_wherever_it_is_in_few_comparisons(
    length: int, data: st.DataObject, size: float
) -> None:
    place = data.draw(st.integers(101, 100 + length))
    oracle = Oracle({place: size})

    search = bisect(oracle, length)

    assert (search.finding, numbers(search)) == (Finding.FOUND, [place])
    assert search.proof is not None
    assert search.proof.answer.base.sha == a_sha(place - 1)
    assert len(oracle.asked) <= 2 + length.bit_length()


@given(st.integers(2, 24), st.data())
def test_the_step_is_among_the_candidates_whatever_does_not_build(length: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(101, 100 + length))
    broken = data.draw(st.frozensets(st.integers(101, 99 + length)))
    oracle = Oracle({place: 0.04}, broken=broken)

    search = bisect(oracle, length)

    assert place in numbers(search)
    assert all(number in broken for number in numbers(search)[:-1]), "only what cannot be measured is left"
    assert (search.finding is Finding.FOUND) == (len(numbers(search)) == 1)
    assert len(set(oracle.asked)) == len(oracle.asked), "nothing is measured twice"


def test_commits_that_give_no_number_are_passed_by_and_named() -> None:
    search = bisect(Oracle({108: 0.04}, broken=frozenset({107, 108})))

    assert (search.finding, numbers(search)) == (Finding.NARROWED, [107, 108, 109])
    assert {int(step.answer.commit.sha, 16) for step in search.skipped} == {107, 108}
    text = bisect_text(search, "softmax", study_id="s", into_merges=False)
    assert "It is one of these 3 commits" in text
    assert "untestable: it does not build" in text


def test_ends_that_do_not_differ_stop_the_search_at_once() -> None:
    oracle = Oracle({})

    search = bisect(oracle)

    assert search.finding is Finding.NO_CHANGE
    assert oracle.asked == [(116, 100, 8)]
    text = bisect_text(search, "softmax", study_id="s", into_merges=False)
    assert text.startswith("softmax, from ")
    assert "no commit to look for" in text


def test_ends_that_cannot_be_compared_stop_the_search_at_once() -> None:
    search = bisect(Oracle({105: 0.04}, broken=frozenset({116})))

    assert (search.finding, len(search.steps)) == (Finding.UNCLEAR, 1)


def test_an_unsure_comparison_is_made_again_with_twice_the_passes() -> None:
    oracle = Oracle({108: 0.04}, moving=frozenset({108}), sharp_from=16)

    search = bisect(oracle)

    assert (search.finding, numbers(search)) == (Finding.FOUND, [108])
    assert [asked for asked in oracle.asked if asked[0] == 108][:2] == [(108, 100, 8), (108, 100, 16)]


def test_more_passes_have_an_end_and_then_the_commit_is_passed_by() -> None:
    oracle = Oracle({108: 0.04}, moving=frozenset({108}), sharp_from=1000)

    search = bisect(oracle)

    assert [asked[2] for asked in oracle.asked if asked[0] == 108] == [8, 16, 32]
    assert (search.finding, numbers(search)) == (Finding.NARROWED, [108, 109])


def test_of_two_steps_one_is_found_and_said_to_be_less_than_the_whole() -> None:
    search = bisect(Oracle({104: 0.02, 112: 0.06}))

    assert (search.finding, numbers(search)) == (Finding.FOUND, [104])
    assert search.is_partial
    text = bisect_text(search, "softmax", study_id="s", into_merges=False)
    assert "less than the whole" in text
    assert f"collect bisect {a_sha(104)[:9]} {a_sha(116)[:9]}" in text
    assert f"collect bisect {a_sha(100)[:9]} {a_sha(103)[:9]}" in text


def test_a_single_step_is_the_whole() -> None:
    search = bisect(Oracle({104: 0.06}))

    assert not search.is_partial


def test_a_dip_on_the_way_is_not_the_change_that_is_looked_for() -> None:
    search = bisect(Oracle({104: -0.05, 110: 0.04}))

    assert (search.finding, numbers(search)) == (Finding.FOUND, [110])


def test_small_steps_that_add_up_are_not_blamed_on_one_commit() -> None:
    drift = {number: 0.003 * (number - 100) for number in range(101, 117)}

    search = bisect(Oracle(drift))

    assert search.finding is Finding.UNPROVEN
    assert search.found is not None
    assert "several small ones" in bisect_text(search, "softmax", study_id="s", into_merges=False)


def test_an_interrupt_leaves_what_is_known_so_far() -> None:
    search = bisect(Oracle({108: 0.04}, interrupt_at=2))

    assert (search.finding, len(search.steps)) == (Finding.INTERRUPTED, 2)
    assert 108 in numbers(search)
    assert len(search.candidates) < 16


@pytest.mark.parametrize(
    ("answered", "says"),
    [
        (verdict(0.04), Says.CHANGED),
        (verdict(-0.04), Says.SAME),
        (verdict(0.001), Says.SAME),
        (verdict(0.001, sight=0.05), Says.UNSURE),
        (verdict(0.04, passing=Reason.MACHINE_MOVED), Says.UNSURE),
        (verdict(0.04, passing=Reason.TIER_TOO_LOW), Says.UNSURE),
        (verdict(0.04, passing=Reason.NEW_BENCHMARK), Says.UNTESTABLE),
        (None, Says.UNTESTABLE),
    ],
)
def test_what_a_comparison_says_about_a_regression_of_four_per_cent(
    answered: Verdict | None, says: Says
) -> None:
    answer = Answer(a_commit(101), GOOD, 8, answered)

    assert says_of(answer, verdict(0.04)) is says


def test_more_passes_of_a_wall_clock_would_be_of_tier_c_again() -> None:
    run = a_run(101, header={"timer": Timer.WALL})
    low = a_verdict(run, outcome=Outcome.INCONCLUSIVE, reason=Reason.TIER_TOO_LOW)

    assert says_of(Answer(a_commit(101), GOOD, 8, low), None) is Says.UNTESTABLE


def test_a_blunt_comparison_is_sharpened_before_it_sends_the_search_elsewhere() -> None:
    calls: list[int] = []

    def compare(commit: Commit, base: Commit, passes: int, _series: SeriesKey | None) -> Answer:
        calls.append(passes)
        effect = 0.04 if int(commit.sha, 16) >= 103 else 0.0
        return Answer(commit, base, passes, verdict(effect, sight=0.08 / passes if effect == 0 else 0.001))

    search = Bisection(compare, passes=1, note=lambda _: None).search(
        GOOD, [a_commit(number) for number in range(101, 105)]
    )

    assert numbers(search) == [103]
    assert calls.count(2) == 1
    assert max(calls) < 2**MORE_PASSES


def test_the_answer_as_json_holds_every_comparison_with_its_evidence() -> None:
    search = bisect(Oracle({108: 0.04}, broken=frozenset({107})))
    told = json.loads(json.dumps(bisect_json(search, verdict(0.04).series, study_id="s"), allow_nan=False))

    assert told["finding"] == "narrowed"
    assert told["candidates"] == [a_sha(107), a_sha(108)]
    assert told["skipped"] == [a_sha(107)]
    assert told["whole"]["verdict"]["outcome"] == "REGRESSED"
    assert len(told["steps"]) == len(search.steps)


def test_what_people_wrote_cannot_drive_a_terminal() -> None:
    hostile = a_commit(101, subject="\x1b[2J\u202eclear", author="\x1b]0;x\x07")
    search = Bisection(Oracle({101: 0.04}), passes=8, note=lambda _: None).search(GOOD, [hostile])

    assert search.found == hostile
    assert not set(bisect_text(search, "softmax", study_id="s", into_merges=False)) & {
        "\x1b",
        "\x07",
        "\u202e",
    }
