"""Output of commands: results on stdout, everything else on stderr, and JSON that every parser accepts.

Rows, file names and user input may contain anything; control sequences in them do not reach the terminal.
"""

import argparse
import json
import math
import re
import sys
from typing import Any, NoReturn

from ..text import to_terminal


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
