"""The pages of the app, a folder each, and the modules they share; Streamlit serves no file directly in this folder."""
