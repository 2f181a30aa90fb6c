"""The pages of the app, one folder for each group of the menu; Streamlit serves no file directly in here."""
