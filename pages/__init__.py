"""The pages of the app, a folder each, and what they share; Streamlit serves no file directly in here."""
