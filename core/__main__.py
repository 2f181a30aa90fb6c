"""The command line, `python -m core`: passes the arguments to a command and prints its errors as sentences.

Results go to stdout, progress and errors to stderr. The exit status is 0 on success, 2 on a usage error and 1 on a
failed run. The command line runs without Streamlit and Altair.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from . import __version__
from .commands import COMMAND_HELP, EXAMPLES, FAILED, USAGE, Parser, print_note
from .errors import CrossoverError, DeviceUnavailable, ForeignFile, InvalidValue, LaneUnavailable
from .text import clean_logs

COMMANDS = {
    "app": "app",
    "devices": "machines",
    "run": "run",
    "sweep": "run",
    "crossover": "crossover",
    "at": "crossover",
    "choose": "crossover",
    "lesson": "lesson",
    "case": "lesson",
    "contribute": "contribute",
    "store": "store",
    "machines": "machines",
    "class": "classroom",
}
"""Module of each command in `core.commands`, imported on use because importing all of them takes half a second."""


USAGE_ERRORS = (InvalidValue, ForeignFile, DeviceUnavailable, LaneUnavailable)
"""Errors that are found before anything is measured."""


def start() -> int:
    """Open the app if no command is given, else run the command; the entry point `crossover` of the package."""
    return main(sys.argv[1:] or ["app"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    clean_logs()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(*words[:1] or [""]).parse_args(words)
        status: int = options.command(options)
    except CrossoverError as error:
        from .question import describe  # imports all parts of a question, which no help text needs

        print_note(describe.format_command_error(error))
        return USAGE if isinstance(error, USAGE_ERRORS) else FAILED
    except KeyboardInterrupt:  # not an error; if a job is followed, this stops the job
        print_note("Stopped.")
        return FAILED
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    return status


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """Return the argument parser with one command or all; parsed options contain the function to call as `command`.

    Args:
        word: name of the command to load; all others are only listed. None loads every command.
    """
    root = Parser(prog="python -m core", description="When does training on a GPU start to pay off?")
    root.add_argument("--version", action="version", version=f"crossover {__version__}")
    commands = root.add_subparsers(required=True, metavar="command")
    asked = [name for name in COMMANDS if word in (None, name)]
    for name in asked:
        module = importlib.import_module(f".commands.{COMMANDS[name]}", __package__)
        getattr(module, f"add_{name}_command")(commands)
    _add_examples(commands, root.prog)
    for name in (name for name in COMMAND_HELP if name not in commands.choices):
        commands.add_parser(name, help=COMMAND_HELP[name])
    return root


def _add_examples(commands: Any, program: str, before: str = "") -> None:
    """Add a description and examples to the help of each command and of its actions."""
    helps = {entry.dest: entry.help for entry in commands._choices_actions}
    for name, command in commands.choices.items():
        words = f"{before}{name}"
        lines = [f"  {program} {line}" for line in EXAMPLES if f"{line} ".startswith(f"{words} ")]
        command.description = f"{helps[name][:1].upper()}{helps[name][1:].rstrip('?')}."
        command.epilog = "\n".join(["examples:", *lines])
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        for action in command._actions:
            if isinstance(action, argparse._SubParsersAction):
                _add_examples(action, program, f"{words} ")


if __name__ == "__main__":
    sys.exit(main())
