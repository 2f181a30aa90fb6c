"""The commands of `python -m core`: they parse options, call the same core as the pages, and print.

Results go to stdout, everything else to stderr; JSON is accepted by every parser. Rows, file names and user input may
contain anything; control sequences in them do not reach the terminal.
"""

import argparse
import json
import math
import re
import sys
from typing import Any, NoReturn

from ..text import to_terminal

OK, FAILED, USAGE = 0, 1, 2
"""Exit statuses: success, a failed run or file, wrong usage."""

COMMAND_HELP = {
    "app": "open the app in the browser",
    "devices": "list the devices of this machine",
    "run": "train one model on several devices and compare them",
    "sweep": "vary one setting and find where the GPU becomes faster",
    "crossover": "find the crossover in stored results or in your own timings",
    "at": "find the faster device at given sizes, from a stored study",
    "choose": "predict whether a GPU that is not here would be faster",
    "lesson": "run a lesson on the clock, moving data or the first step",
    "case": "why is my GPU not faster? public reports, run on this machine",
    "contribute": "measure this machine for five minutes and write a file to send in",
    "store": "check, compact, import or export a folder of results",
    "machines": "list the machines of a Ray cluster",
    "class": "create and manage classes, or measure for one",
}
"""Help text of each command, in the order in which they are listed."""

EXAMPLES = (
    "app --training examples",
    "devices --json",
    "run --preset disc",
    "run --dataset digits --model mlp --hidden-size 256 --devices cpu,cuda:0",
    "run --dataset disc --model doubling-mlp --depth 4 --devices cpu@1,cpu@1+compiled10",
    "run --training examples/plain.py:build --size 512 --devices cpu@1,cpu@2 --remedies",
    "sweep --preset fashion-cnn",
    "sweep --dataset signal --axis hidden_size --range 16:4096 --adaptive",
    "sweep --training examples/plain.py:build --axis size --values 64,256,1024 --devices cpu@1,cpu@2",
    "crossover --axis hidden_size --dataset signal",
    "crossover --csv my-timings.csv --json",
    "at --sizes 64,512,4096 --axis hidden_size",
    "crossover rule --axis hidden_size --json",
    "choose --preset disc --depth 9 --gpu v100,t4 --price cpu=0.20,gpu=0.79",
    "lesson clock --preset signal --scale class",
    "lesson moving",
    "case",
    "case keras-lstm --run",
    "contribute",
    "store check",
    "store compact",
    "store import rows.parquet",
    "store import --contributed crossover-contribution.zip",
    "store export rows.parquet",
    "machines --on ray",
    'class create --name "Physics 7b" --preset disc',
    "class list",
    "class students --code KX4-M9P-QS7",
    "class admit --code KX4-M9P-QS7 --nickname ada",
    "class remove --code KX4-M9P-QS7 --nickname ada",
    "class merge --code KX4-M9P-QS7 --nickname ada --into bea",
    "class delete --code KX4-M9P-QS7",
    "class code",
    "class measure --code KX4-M9P-QS7 --nickname ada --preset disc",
)
"""Example lines at the end of the help of the command with which each begins."""


def print_result(text: str) -> None:
    """Print a result as text, with one line break at the end."""
    print(to_terminal(text).rstrip("\n"))


def print_json(document: dict[str, Any]) -> None:
    """Print a result as JSON; numbers that are not finite, which JSON does not support, become null."""
    text = json.dumps(_finite(document), indent=2, default=str, allow_nan=False)
    print(text.replace("\x7f", "\\u007f"))  # the one control character that JSON allows unescaped


def print_answer(options: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    """Print a result in the requested form: JSON or text."""
    if options.json:
        print_json(document)
    else:
        print_result(text)


def print_note(sentence: str) -> None:
    """Print a message that is not part of the result."""
    print(to_terminal(sentence), file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A parser whose errors quote the input."""

    def error(self, message: str) -> NoReturn:
        """Print the error of the command line in one sentence, and exit."""
        wrong = re.sub(r"^(\S+): (?=must be )", r"\1 ", message.removeprefix("argument ")).rstrip(".")
        self.exit(2, to_terminal(f"{wrong}. See all options: {self.prog} --help") + "\n")


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(entry) for name, entry in value.items()}
        case list() | tuple():
            return [_finite(entry) for entry in value]
        case float():
            return value if math.isfinite(value) else None
    return value
