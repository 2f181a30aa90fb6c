"""The Tutorials page."""
