"""Every fuzzer by its name."""

from tests.fuzz import classes, exhibits, files, jobs, links, parquet, rows, settings, timings

FILES = (*jobs.KINDS, *classes.KINDS, *settings.KINDS)
"""Kinds of small files."""

ANY_FILE = files.any_of(FILES)

OTHERS = (links, timings, exhibits, parquet, rows)
FUZZERS = {made.name: made for made in (*map(files.fuzzer, FILES), *(other.FUZZER for other in OTHERS))}
