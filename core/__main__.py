"""The command line: `python -m core`. Hands the words to a command and turns its errors into sentences.

Results go to stdout, progress and errors to stderr. Exit status 0 on success, 2 on a usage error, 1 on a failed run.
Runs without Streamlit and Altair.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from core.commands import FAILED, HELP, USAGE, output
from core.errors import CrossoverError, ForeignFile, InvalidValue
from core.text import clean_logs

COMMANDS = {
    "devices": "devices",
    "run": "run",
    "sweep": "sweep",
    "crossover": "crossover",
    "lesson": "lesson",
    "case": "case",
    "store": "store",
    "machines": "machines",
    "class": "classroom",
}
"""Module of each command in `core.commands`, imported where it is asked for: all of them take half a second."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    clean_logs()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(*words[:1] or [""]).parse_args(words)
        status: int = options.command(options)
    except CrossoverError as error:
        from core.question.fields import refused  # with what a question is made of, which no word of help needs

        output.say(refused.in_command(error))
        return USAGE if isinstance(error, InvalidValue | ForeignFile) else FAILED
    except KeyboardInterrupt:  # where a job is followed, that stops the job and is no error
        output.say("Stopped.")
        return FAILED
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    return status


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """A command with its options, or all of them; what is parsed has the function that answers it as `command`.

    Args:
        word: the command; of all others there are the names alone, as there are where it is none. All unless given.
    """
    root = output.Parser(prog="python -m core", description="When does training on a GPU start to pay off?")
    commands = root.add_subparsers(required=True, metavar="command")
    asked = [name for name in COMMANDS if word in (None, name)]
    for module in dict.fromkeys(COMMANDS[name] for name in asked):
        importlib.import_module(f"core.commands.{module}").add(commands)
    for name in (name for name in HELP if name not in commands.choices):
        commands.add_parser(name, help=HELP[name])
    return root


if __name__ == "__main__":
    sys.exit(main())
