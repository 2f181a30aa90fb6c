"""The commands of `python -m core`, a module each; every one parses, asks the same core as the pages, and prints."""

OK, FAILED, USAGE = 0, 1, 2
"""Exit statuses: done, a run or a file failed, asked wrongly."""
