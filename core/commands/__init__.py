"""The commands of `python -m core`, a module each; every one parses, asks the same core as the pages, and prints."""

OK, FAILED, USAGE = 0, 1, 2
"""Exit statuses: done, a run or a file failed, asked wrongly."""

HELP = {
    "devices": "what this machine can train on",
    "run": "train one model on several devices and compare",
    "sweep": "vary one training along an axis and find where the GPU starts to win",
    "crossover": "from which size on the GPU wins, in a store or one's own timings",
    "lesson": "show what the clock, moving data, or the first step is about",
    "case": "why is my GPU not faster? public threads, run on this machine",
    "store": "check, compact, import or export a folder of results",
    "machines": "the machines of a Ray cluster",
    "class": "make a class, or measure for one",
}
"""What each command does, in the order in which they are listed."""
