"""`print_devices`: the devices of this machine that can train."""

import argparse
from typing import Any

from ..jobs.queue import Queue
from . import COMMAND_HELP, OK, arguments, measuring, output


def add_devices_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("devices", help=COMMAND_HELP["devices"])
    arguments.add_options(parser, "json")
    parser.set_defaults(command=print_devices)


def print_devices(options: argparse.Namespace) -> int:
    """Print the machine, its devices, and instructions for a missing device."""
    machine = measuring.require_machine(Queue())
    about = machine.environment
    lines = [
        f"{about.cpu_name}, {about.cores_usable} of {about.cores} threads usable, {about.system}",
        f"Python {about.python_version}, torch {about.torch_version}",
        *(f"{i.device:8} {i.kind:5} {i.name}{', ' + i.driver if i.driver else ''}" for i in machine.devices),
        machine.hint,
    ]
    output.print_answer(options, machine.to_json(), "\n".join(lines))
    return OK
