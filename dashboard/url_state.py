"""Widgets whose state is the URL, so that every view can be shared and the back button works.

The URL is the only truth: before a widget is drawn it takes its value from the URL, and a
change made by a person goes into the URL first. A value that is the default is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Parameters = dict[str, str | list[str]]


def page_address(page: str, parameters: Mapping[str, str | Sequence[str]]) -> str:
    """The address of a page on this server, also below a proxy's path."""
    base_path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    root = f"/{base_path}/" if base_path else "/"
    query = urlencode({name: value for name, value in parameters.items() if value}, doseq=True)
    return f"{root}{page}" + (f"?{query}" if query else "")


def with_parameter(name: str, value: str | None) -> str:
    """The address of the page that is shown, with one parameter changed or, for None, left out."""
    parameters: dict[str, str | Sequence[str]] = {
        other: st.query_params.get_all(other) for other in st.query_params if other != name
    }
    page = urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[2]
    base_path = str(st.get_option("server.baseUrlPath") or "").strip("/").rpartition("/")[2]
    return page_address("" if page == base_path else page, parameters | ({name: value} if value else {}))


def in_url(name: str) -> list[str]:
    """The values that the URL gives a name, without empty ones and in their order."""
    return [value for value in dict.fromkeys(st.query_params.get_all(name)) if value]


def text(label: str, name: str, *, placeholder: str) -> str:
    """A search box."""
    st.session_state[_key(name)] = next(iter(in_url(name)), "")
    return (
        st.text_input(
            label,
            key=_key(name),
            placeholder=placeholder,
            on_change=lambda: _write(name, [st.session_state[_key(name)].strip()]),
        )
        or ""
    ).strip()


def many(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    show: Callable[[str], str] = str,
    placeholder: str = "all",
    most: int | None = None,
) -> list[str]:
    """Any number of options; values of the URL that are no option are left to the caller."""
    st.session_state[_key(name)] = [value for value in in_url(name) if value in options][:most]
    return st.multiselect(
        label,
        options,
        key=_key(name),
        format_func=show,
        placeholder=placeholder,
        max_selections=most,
        on_change=lambda: _write(name, st.session_state[_key(name)]),
    )


def one(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    default: str,
    show: Callable[[str], str] = str,
    width_px: int | None = None,
) -> str:
    """One of several options, chosen from a list as wide as the page unless a width is given."""
    st.session_state[_key(name)] = _only(name, options, default)
    chosen = st.selectbox(
        label,
        options,
        key=_key(name),
        format_func=show,
        width=width_px or "stretch",
        on_change=lambda: _write_unless(name, st.session_state[_key(name)], default),
    )
    return chosen or default


def switch(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    default: str,
    show: Callable[[str], str] = str,
    help_text: str | None = None,
) -> str:
    """One of a few options, all of them in sight."""
    st.session_state[_key(name)] = _only(name, options, default)
    chosen = st.segmented_control(
        label,
        options,
        key=_key(name),
        format_func=show,
        required=True,
        help=help_text,
        on_change=lambda: _write_unless(name, st.session_state[_key(name)], default),
    )
    return chosen or default


def flag(label: str, name: str, *, help_text: str | None = None) -> bool:
    """A choice that is off unless the URL says ``1``."""
    st.session_state[_key(name)] = in_url(name) == ["1"]
    return st.toggle(
        label,
        key=_key(name),
        help=help_text,
        on_change=lambda: _write(name, ["1"] if st.session_state[_key(name)] else []),
    )


def _key(name: str) -> str:
    return f"url.{name}"


def _only(name: str, options: Sequence[str], default: str) -> str:
    return next((value for value in in_url(name) if value in options), default)


def _write(name: str, values: Sequence[str]) -> None:
    kept = [value for value in values if value]
    if kept:
        st.query_params[name] = kept
    elif name in st.query_params:
        del st.query_params[name]


def _write_unless(name: str, value: str | None, default: str) -> None:
    _write(name, [] if value is None or value == default else [value])
