"""Rows in, meaning out. Nothing here measures, and nothing imports torch."""
