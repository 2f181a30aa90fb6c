"""The command line: `python -m core`. Hands the words to a command and turns its errors into sentences.

Results go to stdout, progress and errors to stderr. Exit status 0 on success, 2 on a usage error, 1 on a failed run.
Runs without Streamlit and Altair.
"""

import argparse
import sys
from collections.abc import Sequence

from core.commands import (
    FAILED,
    USAGE,
    case,
    classroom,
    crossover,
    devices,
    lesson,
    machines,
    output,
    run,
    store,
    sweep,
)
from core.errors import CrossoverError, ForeignFile, InvalidValue
from core.text import clean_logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    clean_logs()
    options = parser().parse_args(arguments)
    try:
        status: int = options.command(options)
    except CrossoverError as error:
        output.say(str(error))
        return USAGE if isinstance(error, InvalidValue | ForeignFile) else FAILED
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    return status


def parser() -> argparse.ArgumentParser:
    """Every command with its options; what is parsed has the function that answers it as `command`."""
    root = output.Parser(prog="python -m core", description="When does training on a GPU start to pay off?")
    commands = root.add_subparsers(required=True, metavar="command")
    for command in (devices, run, sweep, crossover, lesson, case, store, machines, classroom):
        command.add(commands)
    return root


if __name__ == "__main__":
    sys.exit(main())
