"""The Cases page."""
