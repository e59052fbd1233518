"""Triage: confirmed changes that wait for a decision, and the decisions that were made."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import streamlit as st

from alerts.errors import AlertsError
from dashboard import person, queries, states, triage_store, url_state
from dashboard.errors import UnknownSeries
from dashboard.formatting import count_of, gpu_label, literal
from dashboard.read_only import is_read_only
from dashboard.triage_tables import change_facts, changes_table, events_table
from dashboard.url_state import page_address
from store import shown
from store.errors import StoreError
from store.triage_events import BODY_LENGTH_MAX, MUTE_LONGEST, PERSON_LENGTH_MAX, URL_LENGTH_MAX, Action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alerts.inbox import Change
    from store.records import Commit
    from store.triage_events import TriageEvent

_WAITING, _DECIDED, _BRANCHES, _HISTORY = "Waiting", "Decided", "On branches", "History"
_ACTIONS = {
    "Accept": Action.ACCEPT, "Mute": Action.MUTE, "Assign": Action.ASSIGN, "Note": Action.NOTE,
    "Link": Action.LINK,
}  # fmt: skip
_MEANINGS = {
    Action.ACCEPT: "The change is wanted or known: from this commit on, baselines are what came after it.",
    Action.MUTE: "Regressions stay in sight and fail no check and send no mail up to that day.",
    Action.ASSIGN: "Says who looks at it. The change goes on waiting.",
    Action.NOTE: "Written down beside the change.",
    Action.LINK: "An issue, or another page.",
}
_SAID = "triage.said"
_MUTE_USUAL = timedelta(days=30)
_EVENTS_SHOWN = 200


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Triage")
    _show_what_was_said()
    found = triage_store.changes()
    commits = {
        sha: commit
        for repository in dict.fromkeys(change.repository for change in found)
        for sha, commit in queries.commits(repository).items()
    }
    names = {header.gpu_uuid: gpu_label(header.gpu_name, header.gpu_uuid) for header in headers}
    chosen = _chosen(found)
    if chosen is not None:  # above the list: a click on a row leads to the top of the page
        _show_one(chosen, commits, names)
        st.subheader("All changes")
    view = url_state.switch("Show", "show", (_WAITING, _DECIDED, _BRANCHES, _HISTORY), default=_WAITING)
    if view == _HISTORY:
        _show_history(triage_store.events())
    else:
        _show_changes(_kept(found, view), view, commits, names)


def _kept(found: Sequence[Change], view: str) -> list[Change]:
    if view == _BRANCHES:
        return [change for change in found if not change.on_base]
    waiting = view == _WAITING
    return [change for change in found if change.on_base and change.is_open is waiting]


def _show_changes(
    kept: Sequence[Change], view: str, commits: Mapping[str, Commit], names: Mapping[str, str]
) -> None:
    if not kept:
        st.info(
            {
                _WAITING: "Nothing waits for a decision: no confirmed change on the base branch is open.",
                _DECIDED: "Nothing was accepted or muted, and nothing recovered by itself.",
                _BRANCHES: "No change was confirmed on a branch.",
            }[view]
        )
        return
    here = {} if view == _WAITING else {"show": view}
    st.html(changes_table(kept, commits, names, page_address, kept=here))
    st.caption(
        f"{count_of(len(kept), 'change')}, worst first. A click on a benchmark opens it. "
        "One change is what two sessions showed, with the commits after it that still look back behind it."
    )


def _chosen(found: Sequence[Change]) -> Change | None:
    """The change that the URL names; any of its commits will do."""
    series, sha = (next(iter(url_state.in_url(name)), None) for name in ("series", "sha"))
    if series is None:
        return None
    of_series = [change for change in found if change.series.id == series]
    for change in of_series:
        if sha is None or any(own.startswith(sha) for own in change.shas):
            return change
    raise UnknownSeries(
        f"no confirmed change of series {shown.visible(series)} at {shown.visible(sha or 'any commit')} is "
        "stored: it may have been judged anew, or the link belongs to another store"
    )


def _show_one(change: Change, commits: Mapping[str, Commit], names: Mapping[str, str]) -> None:
    st.subheader(literal(change.series.case.label), anchor=False)
    st.html(change_facts(change, commits, names, page_address))
    everything = triage_store.events()
    revoked = {event.revokes: event for event in everything if event.action is Action.REVOKE}
    about = [event for event in everything if change.concerns(event)]
    if about:
        st.html(events_table(about, page_address))
    if is_read_only():
        st.info("These pages are read only: decide with `alerts triage`.")
        return
    _show_deciding(change, [event for event in about if _can_be_taken_back(event, revoked)])


def _can_be_taken_back(event: TriageEvent, revoked: Mapping[str | None, TriageEvent]) -> bool:
    return event.action is not Action.REVOKE and event.event_id not in revoked


def _show_deciding(change: Change, standing: Sequence[TriageEvent]) -> None:
    with st.container(border=True):
        who, what = st.columns([1, 3])
        with who:
            by = person.ask()
        if by is None and person.must_sign_in():
            what.info("Without sign-in these pages are read only.")
            return
        with what:
            label = url_state.switch("Decide", "do", tuple(_ACTIONS), default="Accept")
            _show_form(change, _ACTIONS[label], by)
        if standing and by is not None:
            _show_take_back(standing, by)


def _show_form(change: Change, action: Action, by: str | None) -> None:
    scopes = triage_store.scopes_of(change)
    st.caption(_MEANINGS[action])
    with st.form(f"decide.{action}", clear_on_submit=False, border=False):
        fields = _fields(action)
        about = st.selectbox("About", tuple(scopes), key=f"about.{action}")
        sent = st.form_submit_button(f"{action.capitalize()}", type="primary", disabled=by is None)
    if by is None:
        st.caption("Say who you are first: no decision is anonymous.")
    if sent and by is not None:
        _try(
            lambda: triage_store.decide(action, change, scopes[about], by=by, **fields),
            f"Stored: {action}, {about}.",
        )


def _fields(action: Action) -> dict[str, Any]:
    """Draw what the action asks for, and give back what was filled in."""
    fields: dict[str, Any] = {}
    if action is Action.MUTE:
        today = datetime.now(UTC).date()
        until: date = st.date_input(
            "Last day (UTC)",
            value=today + _MUTE_USUAL,
            min_value=today,
            max_value=today + MUTE_LONGEST,
            format="YYYY-MM-DD",
        )
        fields["muted_until"] = until
    if action is Action.ASSIGN:
        fields["assignee"] = st.text_input(
            "To", max_chars=PERSON_LENGTH_MAX, placeholder="who looks at it", key="typed.assignee"
        ).strip()
    if action is Action.LINK:
        fields["url"] = st.text_input(
            "Address", max_chars=URL_LENGTH_MAX, placeholder="https://", key="typed.url"
        ).strip()
    needed = action in (Action.MUTE, Action.NOTE)
    text = st.text_area(
        "Why" if action is not Action.NOTE else "Note",
        max_chars=BODY_LENGTH_MAX,
        height=80,
        placeholder="" if needed else "optional",
        key=f"typed.{action}",
    ).strip()
    fields["body"] = text or None
    return fields


def _show_take_back(standing: Sequence[TriageEvent], by: str) -> None:
    with st.expander("Take a decision back"):
        st.caption("It stays in the history; taking it back is written down beside it.")
        for event in reversed(standing):
            words = f"{event.action} of {event.day} by {event.decided_by}"
            if st.button(
                f"Take back: {literal(shown.one_line(words, limit=120))}", key=f"back.{event.event_id}"
            ):
                _try(lambda event=event: triage_store.take_back(event, by=by), f"Taken back: {event.action}.")


def _try(store: Any, said: str) -> None:
    """Store something and draw the page anew, or say what stood in the way and keep what was typed."""
    try:
        store()
    except (AlertsError, StoreError) as error:
        st.error(literal(str(error)))
        return
    st.session_state[_SAID] = said
    for key in [name for name in st.session_state if str(name).startswith("typed.")]:
        del st.session_state[key]
    st.rerun()


def _show_what_was_said() -> None:
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        st.success(literal(said))


def _show_history(events: Sequence[TriageEvent]) -> None:
    if not events:
        st.info("Nothing was decided yet.")
        return
    st.html(events_table(events[-_EVENTS_SHOWN:], page_address))
    left_out = len(events) - _EVENTS_SHOWN
    st.caption(
        count_of(len(events), "event")
        + (f"; the oldest {left_out} are in `alerts triage list --history`" if left_out > 0 else "")
        + ". Nothing is ever deleted."
    )


if __name__ == "__main__":
    show()
