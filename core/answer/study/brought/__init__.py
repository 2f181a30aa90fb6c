"""Timings that somebody brings: a table of text becomes evidence like any other."""
