"""The pages, one file each. Streamlit runs them as scripts; ``app.py`` names them."""
