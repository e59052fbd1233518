"""What a page shows when there is nothing to show: what is wrong, and what to type next."""

from __future__ import annotations

import shlex

import streamlit as st

from dashboard.errors import UnknownCommit, UnknownSeries
from dashboard.formatting import literal
from dashboard.queries import store_url
from store.errors import ConfigurationInvalid, RunNotFound, StoreLocked, StoreMissing, StoreTooNew

_HEADINGS: dict[type[Exception], str] = {
    StoreMissing: "There is no store here yet",
    StoreLocked: "The store is in use",
    StoreTooNew: "The store is newer than this dashboard",
    ConfigurationInvalid: "The configuration holds a mistake",
    RunNotFound: "This run is not in the store",
    UnknownSeries: "This series is not in the store",
    UnknownCommit: "This commit is not in the store",
}
_OVERVIEW = "views/overview.py"


def show_error(error: Exception) -> None:
    """A page of its own for an error that the store or a page raised."""
    st.header(_HEADINGS.get(type(error), "The store cannot be read"))
    st.error(literal(str(error)))  # it may quote an address or a file
    if isinstance(error, StoreMissing):
        _show_first_steps()
    elif isinstance(error, StoreLocked):
        st.write("A collector that writes a run needs a moment; its numbers show as soon as it is done.")
        st.button("Try again", type="primary")
    elif isinstance(error, StoreTooNew):
        st.write("Install the version of kernelwatch that wrote it, or a newer one, and start this again:")
        st.code("pip install --upgrade 'kernelwatch[dashboard]'", language=None, wrap_lines=True)
    elif isinstance(error, ConfigurationInvalid):
        st.write("Whoever serves these pages can mend it; then load this page again.")
    elif isinstance(error, UnknownSeries | UnknownCommit | RunNotFound):
        st.page_link(_OVERVIEW, label="Go to the overview")


def show_empty() -> None:
    """The page of a store without a single run."""
    st.header("The store is empty")
    st.write(f"Nothing was measured into `{store_url()}` so far.")
    _show_first_steps()


def _show_first_steps() -> None:
    url = shlex.quote(store_url())
    st.write("Measure the commit you are on, from inside its checkout:")
    st.code(f"collect --commit HEAD --store {url}", language=None, wrap_lines=True)
    st.write("Or take in what another machine measured:")
    st.code(f"store import RUN.kwrun --store {url}", language=None, wrap_lines=True)
    st.write("Then load this page again.")
