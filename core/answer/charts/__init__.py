"""Vega-Lite charts of rows and answers in one look, for a page or a file."""
