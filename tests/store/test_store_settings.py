"""What a table may hold, and what is said about one that does not fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.errors import ConfigurationInvalid
from store.records import RecordInvalid
from store.settings import NotEmpty, Place, Within, check_bounds, read_table

PLACE = Place("kernelwatch.toml", "mail")


class Security(StrEnum):
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class List:
    to: Annotated[tuple[str, ...], NotEmpty()]
    digest: bool = False


@dataclass(frozen=True, kw_only=True)
class Server:
    host: str
    port: Annotated[int, Within(1, 65_535)] = 587


@dataclass(frozen=True, kw_only=True)
class Mail:
    security: Security = Security.TLS
    share: Annotated[float, Within(0, 1, low_open=True, high_open=True)] = 0.5
    pause_s: Annotated[float, Within(0, 60, unit="s")] | None = None
    retries: int = 3
    ports: tuple[int, ...] = ()
    server: Server | None = None
    list: tuple[List, ...] = ()

    def __post_init__(self) -> None:
        if self.retries > 3 and self.pause_s is None:
            raise RecordInvalid("retries without pause_s")


def refusal(raw: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        read_table(Mail, raw, PLACE)
    return str(caught.value)


def test_an_empty_table_gives_the_defaults() -> None:
    assert read_table(Mail, {}, PLACE) == Mail()


def test_values_become_the_types_of_the_record() -> None:
    raw = {
        "security": "none",
        "share": 0.25,
        "pause_s": 2,
        "ports": [25, 587],
        "server": {"host": "mail.example.org"},
        "list": [{"to": ["a@example.org"]}, {"to": ["b@example.org"], "digest": True}],
    }

    assert read_table(Mail, raw, PLACE) == Mail(
        security=Security.NONE,
        share=0.25,
        pause_s=2.0,
        ports=(25, 587),
        server=Server(host="mail.example.org"),
        list=(List(to=("a@example.org",)), List(to=("b@example.org",), digest=True)),
    )


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"retries": "3"}, "retries is '3': give a whole number"),
        ({"retries": 3.0}, "retries is 3.0: give a whole number"),
        ({"retries": True}, "retries is True: give a whole number"),
        ({"share": True}, "share is True: give a number above 0 to below 1"),
        ({"share": "0.1"}, "share is '0.1': give a number"),
        ({"share": 0.0}, "share is 0.0: give a number above 0 to below 1"),
        ({"share": 1}, "share is 1: give a number above 0 to below 1"),
        ({"share": math.nan}, "share is nan: give a number"),
        ({"pause_s": math.inf}, "pause_s is inf: give a number from 0 to 60 s"),
        ({"security": "ssl"}, 'security is \'ssl\': give "tls" or "none"'),
        ({"security": 1}, 'security is 1: give "tls" or "none"'),
        ({"ports": 25}, "ports is 25: give a list of whole numbers"),
        ({"ports": [25, "x"]}, "ports is [25, 'x']: give a list of whole numbers"),
        ({"server": "mail"}, "server is 'mail': give a table"),
        ({"list": [1]}, "list is [1]: give a list of tables"),
        ({"list": {"to": ["x"]}}, "list is a list of tables: write [[mail.list]]"),
    ],
)
def test_a_value_that_does_not_fit_is_shown_beside_what_would(raw: dict[str, Any], said: str) -> None:
    assert f"kernelwatch.toml, [mail]: {said}" in refusal(raw)


def test_an_unknown_key_names_the_nearest_and_all_that_are_known() -> None:
    assert refusal({"secruity": "tls"}) == (
        "kernelwatch.toml, [mail]: unknown key 'secruity': did you mean security? "
        "Known: list, pause_s, ports, retries, security, server, share"
    )


def test_a_key_with_a_dash_is_told_the_one_with_an_underscore() -> None:
    assert "did you mean pause_s?" in refusal({"pause-s": 1})


def test_nothing_is_guessed_where_nothing_is_near() -> None:
    assert "unknown key 'zzz'. Known: list, " in refusal({"zzz": 1})


def test_a_fault_in_an_array_of_tables_names_which_one() -> None:
    found = refusal({"list": [{"to": ["a@example.org"]}, {"to": []}]})

    assert found == (
        "kernelwatch.toml, [[mail.list]] number 2: to is []: give a list of texts in quotes that is not empty"
    )


def test_a_fault_in_a_table_inside_a_table_names_it() -> None:
    found = refusal({"server": {"host": "x", "port": 0}})

    assert found == "kernelwatch.toml, [mail.server]: port is 0: give a whole number from 1 to 65535"


def test_a_key_that_is_needed_and_missing_is_named() -> None:
    assert refusal({"list": [{"digest": True}]}) == (
        "kernelwatch.toml, [[mail.list]] number 1: to is missing: give a list of texts in quotes "
        "that is not empty"
    )


def test_values_that_contradict_each_other_are_told_with_their_place() -> None:
    assert refusal({"retries": 5}) == "kernelwatch.toml, [mail]: retries without pause_s"


def test_what_a_terminal_would_obey_is_shown_and_not_sent() -> None:
    found = refusal({"\x1b[2J": 1, "retries": "\x1b[2J"})

    assert "\x1b" not in found


def test_a_record_made_in_code_is_held_to_the_same_bounds() -> None:
    with pytest.raises(RecordInvalid, match="share is nan: give a number above 0 to below 1"):
        check_bounds(Mail(share=math.nan))


scalars = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.none().map(lambda _: "tls")
)
toml_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["security", "share", "pause_s", "retries", "ports", "server", "list"])
        | st.text(max_size=8),
        toml_values,
        max_size=4,
    )
)
def test_any_table_is_read_within_bounds_or_refused_with_its_place(raw: dict[str, Any]) -> None:
    try:
        read = read_table(Mail, raw, PLACE)
    except ConfigurationInvalid as error:
        assert str(error).startswith("kernelwatch.toml, [")  # noqa: PT017 - both ways out are facts here
        return
    assert 0 < read.share < 1
    assert type(read.retries) is int
    assert all(type(port) is int for port in read.ports)
    assert all(entry.to for entry in read.list)
