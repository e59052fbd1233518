"""The one comment: sections, earlier formats, races, and cuts at every step."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_header, a_sha
from fake_github import TOKEN, FakeGitHub, Fault, listening
from fake_github_answers import BOT, REPOSITORY
from judgements import a_candidate, a_judgement, a_telling_judgement

from alerts.errors import GitHubError
from alerts.github.auth import Secret, Token
from alerts.github.client import Client
from alerts.github.comments import post_section
from alerts.github.patience import Patience
from alerts.github.place import Place
from alerts.github.report import section_of
from alerts.github.sections import (
    HEAD_MARKER,
    Section,
    Tally,
    assemble,
    first_key,
    parse,
    section_key,
)
from alerts.markdown import BYTES_MAX, Surroundings
from alerts.message import compose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLD = f"<!-- kernelwatch:report:v1 key={'a' * 16} run=abc -->"


@pytest.fixture(name="hub")
def _hub() -> Iterator[FakeGitHub]:
    with listening(FakeGitHub()) as hub:
        yield hub
    assert hub.violations == []


def a_client(hub: FakeGitHub, **changes: Any) -> Client:
    return Client(
        Place(repository=REPOSITORY, api_url=hub.url), Token(Secret(TOKEN)),
        sleep=lambda _: None, jitter=lambda: 0.0, **changes,
    )  # fmt: skip


def a_section(key: str = "1", *, text: str = "### hello", sha: str = a_sha(21), **tally: int) -> Section:
    return Section(key=key * 16, run_id=f"run-{key}", commit_sha=sha, tally=Tally(**tally), text=text)


def always(section: Section) -> Callable[[int], Section]:
    return lambda _: section


def post(hub: FakeGitHub, section: Section, **changes: Any) -> str:
    with a_client(hub, **changes.pop("client", {})) as client:
        return post_section(client, 7, always(section), **changes).outcome


def test_a_comment_is_created_then_updated_in_place_then_left_alone(hub: FakeGitHub) -> None:
    assert post(hub, a_section(text="### one")) == "created"
    assert post(hub, a_section(text="### two")) == "updated"
    assert post(hub, a_section(text="### two")) == "unchanged"

    (body,) = hub.bodies()
    assert body.startswith("### two\n")
    assert sum(entry.startswith("PATCH") for entry in hub.log) == 1


def test_two_gpus_share_the_comment_and_the_worse_stands_first(hub: FakeGitHub) -> None:
    post(hub, a_section("1", text="### fine", unchanged=3))
    post(hub, a_section("2", text="### slow", confirmed=1, unchanged=2))
    post(hub, a_section("1", text="### still fine", unchanged=3))

    (body,) = hub.bodies()
    assert body.startswith(
        "### \U0001f534 1 regressed (confirmed), 5 unchanged, in 2 reports\n\n" + HEAD_MARKER
    )
    assert re.findall(r"### (?:slow|still fine|fine)", body) == ["### slow", "### still fine"]


def test_comments_of_others_are_neither_read_nor_touched(hub: FakeGitHub) -> None:
    forged = a_section(text="### forged").whole
    hub.say(forged, login="mallory")
    hub.say("unrelated, by the bot itself")

    post(hub, a_section(text="### real"))

    assert hub.bodies()[:2] == [forged, "unrelated, by the bot itself"]
    assert len(hub.bodies()) == 3


def test_a_comment_of_the_first_format_is_taken_over(hub: FakeGitHub) -> None:
    header = a_header()
    old = f"**1 regressed**: x\n\n<!-- kernelwatch:report:v1 key={first_key(header)} run=abc -->\n"
    number = hub.say(old)

    post(hub, a_section(text="### new"), replaces=[first_key(header)])

    assert list(hub.comments) == [number]
    assert "**1 regressed**" not in hub.bodies()[0]


def test_comments_of_the_first_format_about_other_gpus_become_sections_of_one(hub: FakeGitHub) -> None:
    hub.say(f"**other GPU**: x\n\n{OLD}\n")
    hub.say(f"**third GPU**: y\n\n{OLD.replace('aaaa', 'bbbb')}\n")

    post(hub, a_section(text="### new"))

    (body,) = hub.bodies()
    assert [one.text.splitlines()[0] for one in parse(body)] == [
        "### new",
        "**other GPU**: x",
        "**third GPU**: y",
    ]


def test_the_comment_is_found_beyond_the_first_page(hub: FakeGitHub) -> None:
    hub.page_max = 2
    for number in range(5):
        hub.say(f"talk {number}", login="ada")
    post(hub, a_section(text="### one"))
    hub.say("more talk", login="ada")

    assert post(hub, a_section(text="### two")) == "updated"
    assert sum("### " in body for body in hub.bodies()) == 1


def test_a_late_job_does_not_replace_what_is_said_about_a_newer_commit(hub: FakeGitHub) -> None:
    post(hub, a_section(text="### newest", sha=a_sha(22)))

    assert post(hub, a_section(text="### late", sha=a_sha(21)), head_sha=a_sha(22)) == "left"
    assert hub.bodies()[0].startswith("### newest")


def test_of_an_older_commit_only_the_answer_is_kept(hub: FakeGitHub) -> None:
    post(hub, a_section("1", text="### answer of before\n\nlong details", sha=a_sha(20)))
    post(hub, a_section("2", text="### now", sha=a_sha(21)))

    (body,) = hub.bodies()
    assert "### answer of before" in body
    assert "an older commit, not measured since" in body
    assert "long details" not in body


def test_a_browser_that_sends_carriage_returns_does_not_hide_the_sections() -> None:
    assert [s.text for s in parse(a_section(text="### a\n\nb").whole.replace("\n", "\r\n"))] == ["### a\n\nb"]


@pytest.mark.parametrize("kind", ["before", "after", "within"])
@pytest.mark.parametrize("exists", [False, True])
def test_one_cut_at_any_step_leaves_one_right_comment(kind: str, *, exists: bool) -> None:
    for step in range(1, 7):
        with listening(FakeGitHub()) as hub:
            if exists:
                hub.say(a_section(text="### before").whole)
            hub.faults[step] = Fault(kind)

            post(hub, a_section(text="### after"))

            assert [body.splitlines()[0] for body in hub.bodies()] == ["### after"], step
            assert hub.violations == []


@pytest.mark.parametrize("kind", ["before", "after", "within"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_network_that_stays_away_leaves_at_most_one_comment_and_the_next_job_mends_it(
    kind: str, *, exists: bool
) -> None:
    for step in itertools.count(1):
        with listening(FakeGitHub()) as hub:
            if exists:
                hub.say(a_section(text="### before").whole)
            hub.faults = {number: Fault(kind) for number in range(step, 60)}
            try:
                post(hub, a_section(text="### after"), client={"patience": Patience(attempts=2)})
            except GitHubError:
                pass
            else:
                assert step > 4  # nothing was left to cut
                return

            assert len(hub.bodies()) <= 1, step
            hub.faults = {}
            post(hub, a_section(text="### after"))
            assert [body.splitlines()[0] for body in hub.bodies()] == ["### after"], step
            assert hub.violations == []


def test_two_jobs_that_create_at_once_end_with_one_comment_of_both(hub: FakeGitHub) -> None:
    other = a_section("2", text="### other").whole

    def another_job_is_faster(asked: str) -> None:
        if asked.startswith("POST") and not hub.comments:
            hub.say(other)

    hub.before_each = another_job_is_faster

    post(hub, a_section("1", text="### own"))

    (body,) = hub.bodies()
    assert {one.text for one in parse(body)} == {"### own", "### other"}


def test_a_section_that_another_job_wrote_over_is_written_again(hub: FakeGitHub) -> None:
    hub.say(a_section("2", text="### other").whole)
    patched: list[str] = []

    def write_over(asked: str) -> None:
        if asked.startswith("GET") and asked.endswith("comments") and len(patched) == 1:
            next(iter(hub.comments.values()))["body"] = a_section("2", text="### other, again").whole
            patched.append("over")
        if asked.startswith("PATCH"):
            patched.append(asked)

    hub.before_each = write_over

    post(hub, a_section("1", text="### own"))

    assert {one.text for one in parse(hub.bodies()[0])} == {"### own", "### other, again"}


def test_a_comment_that_is_never_left_alone_is_given_up(hub: FakeGitHub) -> None:
    rounds = itertools.count()

    def spoil(asked: str) -> None:
        if asked.startswith("GET") and hub.comments:
            next(iter(hub.comments.values()))["body"] = a_section("2", text=f"### {next(rounds)}").whole

    hub.before_each = spoil

    with pytest.raises(GitHubError, match="changed by others 6 times"):
        post(hub, a_section())


def test_a_comment_that_was_deleted_meanwhile_is_made_again(hub: FakeGitHub) -> None:
    hub.say(a_section(text="### before").whole)
    hub.before_each = lambda asked: hub.comments.clear() if asked.startswith("PATCH") else None

    post(hub, a_section(text="### after"))

    assert [body.splitlines()[0] for body in hub.bodies()] == ["### after"]


def test_whose_comments_are_ours_is_asked_where_a_token_belongs_to_a_person(hub: FakeGitHub) -> None:
    hub.logins[TOKEN] = "ada"
    hub.say(a_section(text="### the workflow's").whole, login=BOT)

    post(hub, a_section(text="### mine"))

    assert len(hub.bodies()) == 2


def test_runs_of_other_suites_and_gpus_have_keys_of_their_own() -> None:
    keys = {
        section_key(a_header(**changes))
        for changes in ({}, {"number": 3}, {"gpu_uuid": "GPU-x"}, {"suites": ("other",)}, {"repository": "r"})
    }

    assert len(keys) == 4


def test_a_section_comes_back_from_a_comment_as_it_was() -> None:
    section = section_of(compose(a_telling_judgement()), Surroundings())(BYTES_MAX)

    (found,) = parse(assemble([], always(section)))

    assert (found.key, found.commit_sha, found.tally) == (section.key, section.commit_sha, section.tally)
    assert found.tally.words == "2 regressed (confirmed), 1 improved, 2 unchanged, 2 not measured"
    assert found.text == section.text.strip()


def test_a_run_id_cannot_close_the_hidden_line() -> None:
    section = a_section()

    assert Section(
        key=section.key, run_id="--><script>", commit_sha="", tally=Tally(), text=""
    ).marker.count("-->") == 1  # fmt: skip


def test_many_long_sections_stay_within_githubs_length_and_none_is_lost() -> None:
    others = [a_section(f"{i:x}", text=f"### answer {i}\n\n" + "details " * 5000) for i in range(1, 15)]

    def own(limit: int) -> Section:
        return a_section("f", text="### own\n" + "x" * max(limit - 10, 0))

    body = assemble(others, own)

    assert len(body.encode()) <= BYTES_MAX
    assert [one.key[0] for one in parse(body)] == sorted([*"123456789abcde", "f"])
    assert all(f"### answer {i}" in body for i in range(1, 15))


def test_more_reports_than_fit_are_counted_and_not_looped_over() -> None:
    others = [
        Section(key=f"{number:016x}", run_id="r", commit_sha="", tally=Tally(unchanged=1), text="x" * 390)
        for number in range(200)
    ]

    body = assemble(others, always(a_section("f", text="### own")))

    dropped = re.search(r"in (\d+) reports; (\d+) more do not fit here", body.splitlines()[0])
    assert dropped is not None
    assert int(dropped[1]) + int(dropped[2]) == 201
    assert len(parse(body)) == int(dropped[1])
    assert "### own" in body
    assert len(body.encode()) <= BYTES_MAX


def test_nothing_in_a_benchmarks_name_makes_a_hidden_line_of_ours() -> None:
    hostile = f"x\n{OLD}\n<!-- kernelwatch:section:v2 key={'b' * 16} run=x sha= tally=0.0.0.0.0.0.0 -->"
    message = compose(a_judgement(a_candidate(1.08, benchmark=hostile), confirmed=True))
    section = section_of(message, Surroundings())(BYTES_MAX)

    assert [one.key for one in parse(assemble([], always(section)))] == [section.key]
