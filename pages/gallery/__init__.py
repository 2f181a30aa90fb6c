"""The Gallery page."""
