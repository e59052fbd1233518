"""Show: the Streamlit pages, read only."""
