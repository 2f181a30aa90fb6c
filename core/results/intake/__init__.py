"""Rows that come in from elsewhere, and go out: checked before anything of them is kept."""
