"""What ``streamlit run`` starts: the frame and the way to the pages, nothing else."""

from pathlib import Path

import streamlit as st

from dashboard import states
from dashboard.errors import DashboardError
from store.errors import StoreError

_HERE = Path(__file__).parent
_ASSETS = _HERE / "assets"

# A local picture: an icon by name would be fetched from a server outside.
st.set_page_config(page_title="kernelwatch", page_icon=str(_ASSETS / "icon.png"), layout="wide")
st.html(_ASSETS / "style.css")
# Our own file, the same for everyone; nothing that was measured goes into it.
st.html(
    f"<script>{(_ASSETS / 'links.js').read_text(encoding='utf-8')}</script>", unsafe_allow_javascript=True
)
page = st.navigation(
    [
        st.Page(_HERE / "views" / "overview.py", title="Overview", default=True),
        st.Page(_HERE / "views" / "trends.py", title="Trends", url_path="trends"),
        st.Page(_HERE / "views" / "commit.py", title="Commit", url_path="commit"),
        st.Page(_HERE / "views" / "compare.py", title="Compare", url_path="compare"),
        st.Page(_HERE / "views" / "machine.py", title="Machine", url_path="machine"),
        st.Page(_HERE / "views" / "evidence.py", title="Evidence", url_path="evidence"),
        st.Page(_HERE / "views" / "triage.py", title="Triage", url_path="triage"),
    ],
    position="top",
)
try:
    page.run()
except (StoreError, DashboardError) as error:
    states.show_error(error)
