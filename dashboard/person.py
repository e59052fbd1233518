"""Who is deciding: the one who signed in, else the name that a person typed once. Never nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import sign_in
from store.triage_events import PERSON_LENGTH_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

# Kept apart from the widget: what a widget holds is gone as soon as another page is shown.
_TYPED = "person.typed"
_WIDGET = "person.widget"


def person_of(claims: Mapping[str, object]) -> str | None:
    """The person in what the sign-in service told, or None where nobody is signed in.

    Args:
        claims: Streamlit's ``st.user``.
    """
    if not claims.get("is_logged_in"):
        return None
    name, email = (str(claims.get(key) or "").strip() for key in ("name", "email"))
    found = f"{name} <{email}>" if name and email else name or email or str(claims.get("sub") or "").strip()
    return found[:PERSON_LENGTH_MAX] or None


def must_sign_in() -> bool:
    """Whether a name that is typed is not enough here."""
    return sign_in.is_required() or "is_logged_in" in st.user


def _signed_in() -> str | None:
    if "is_logged_in" not in st.user:
        st.error(
            "Sign-in is out of order: the file that describes it changed or is gone. Start `dashboard` anew."
        )
        return None
    person = person_of(st.user)
    if person is None:
        st.write("Sign in to decide.")
        st.button("Sign in", on_click=st.login, type="primary", key="sign-in")
    else:
        st.caption("You decide as")
        st.text(person)
        st.button("Sign out", on_click=st.logout, key="sign-out")
    return person


def ask() -> str | None:
    """Show who is deciding, or ask; None as long as nobody is known.

    Where sign-in is configured nobody decides without it: a typed name would get round it.
    """
    if must_sign_in():
        return _signed_in()
    st.session_state.setdefault(_WIDGET, st.session_state.get(_TYPED, ""))
    st.text_input(
        "Your name",
        key=_WIDGET,
        max_chars=PERSON_LENGTH_MAX,
        placeholder="such as Ada Example",
        help="Stands beside every decision you make here. It is kept until you close or reload this page.",
        on_change=lambda: st.session_state.update({_TYPED: st.session_state[_WIDGET].strip()}),
    )
    return st.session_state.get(_TYPED) or None
