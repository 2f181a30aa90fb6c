"""Answers from thousands of rows at once."""
