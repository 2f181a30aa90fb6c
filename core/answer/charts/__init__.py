"""Rows and answers as charts: Vega-Lite specifications in one look, to be drawn by a page or written to a file."""
