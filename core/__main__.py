"""The command line: `python -m core`. Hands the words to a command and turns its errors into sentences.

Results go to stdout, progress and errors to stderr. Exit status 0 on success, 2 on a usage error, 1 on a failed run.
Runs without Streamlit and Altair.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from . import __version__
from .commands import COMMAND_HELP, EXAMPLES, FAILED, USAGE, output
from .errors import CrossoverError, DeviceUnavailable, ForeignFile, InvalidValue, LaneUnavailable
from .text import clean_logs

COMMANDS = {
    "app": "app",
    "devices": "devices",
    "run": "run",
    "sweep": "sweep",
    "crossover": "crossover",
    "at": "crossover",
    "choose": "choose",
    "lesson": "lesson",
    "case": "case",
    "contribute": "contribute",
    "store": "store",
    "machines": "machines",
    "class": "classroom",
}
"""Module of each command in `core.commands`, imported when it is needed: all of them take half a second."""


USAGE_ERRORS = (InvalidValue, ForeignFile, DeviceUnavailable, LaneUnavailable)
"""Errors that are found before anything is measured."""


def start() -> int:
    """Open the app if no command is given, else run the command; this is `crossover` of an installed package."""
    return main(sys.argv[1:] or ["app"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    clean_logs()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(*words[:1] or [""]).parse_args(words)
        status: int = options.command(options)
    except CrossoverError as error:
        from .question import describe  # with what a question is made of, which no word of help needs

        output.print_note(describe.format_command_error(error))
        return USAGE if isinstance(error, USAGE_ERRORS) else FAILED
    except KeyboardInterrupt:  # where a job is followed, that stops the job and is no error
        output.print_note("Stopped.")
        return FAILED
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    return status


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """Return a command with its options, or all of them; what is parsed has the function that answers it as `command`.

    Args:
        word: the command; of all others there are the names alone, as there are where it is none. All unless given.
    """
    root = output.Parser(prog="python -m core", description="When does training on a GPU start to pay off?")
    root.add_argument("--version", action="version", version=f"crossover {__version__}")
    commands = root.add_subparsers(required=True, metavar="command")
    asked = [name for name in COMMANDS if word in (None, name)]
    for module in dict.fromkeys(COMMANDS[name] for name in asked):
        loaded = importlib.import_module(f".commands.{module}", __package__)
        getattr(loaded, f"add_{module}_command")(commands)
    _add_examples(commands, root.prog)
    for name in (name for name in COMMAND_HELP if name not in commands.choices):
        commands.add_parser(name, help=COMMAND_HELP[name])
    return root


def _add_examples(commands: Any, program: str, before: str = "") -> None:
    """Add what each command does and its examples to its help, and to those of its actions."""
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
