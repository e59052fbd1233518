"""What the command ``dashboard`` becomes: Streamlit's server, with all that pages need imported first.

Altair, pandas and DuckDB take seconds to import. Whoever opens the first page should not wait
for them, so they are imported before the server listens.
"""

from __future__ import annotations

import sys
from importlib import import_module

from streamlit.web.cli import main

_NEEDED = ("altair", "duckdb", "pandas", "pyarrow", "scipy.special", "streamlit.elements.vega_charts")

if __name__ == "__main__":
    for name in _NEEDED:
        import_module(name)
    sys.exit(main())
