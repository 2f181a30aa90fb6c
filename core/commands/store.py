"""`store`: check, compact, import or export a folder of results."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from .. import units
from ..errors import InvalidValue, StoreError, unwritable
from ..files import atomic
from ..remote import local_cache
from ..results import compaction, exchange
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, output

MANY_FILES = 1_000
"""Files from which on it is worth while to merge them."""


def add_store_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("store", help=COMMAND_HELP["store"])
    actions = parser.add_subparsers(required=True, metavar="action")
    for name, command, what in (
        ("check", check_store, "read every file and name those that are skipped"),
        ("compact", compact, "merge the small files into few large ones, which are read faster"),
        ("import", import_file, "add the rows of a parquet file from another machine"),
        ("export", export, "write all rows into one .parquet or .csv file"),
    ):
        action = actions.add_parser(name, help=what)
        if name in ("import", "export"):
            action.add_argument("file", type=Path)
        arguments.add_options(action, "store", "json")
        action.set_defaults(command=command)


def check_store(options: argparse.Namespace) -> int:
    """Print how many rows can be read, and the name of every file that cannot."""
    found = Store(arguments.require_store_folder(options)).check()
    newer = "was written by a newer version; the columns known here were read"
    lines = [f"{units.format_quantity(found.rows, 'row')} in {local_cache.describe_store(options.store)}"]
    lines += [f"skipped {entry.name}: {entry.reason}" for entry in found.skipped]
    lines += [f"{name} {newer}" for name in found.newer]
    if found.files >= MANY_FILES:
        lines.append(f"They are in {found.files:,} files, which are read faster after: store compact")
    output.print_answer(options, dataclasses.asdict(found), "\n".join(lines))
    return FAILED if found.skipped else OK


def compact(options: argparse.Namespace) -> int:
    """Merge small files; name those that were left as they are."""
    done = compaction.compact(arguments.require_store_folder(options))
    copies = f"\n{done.copies:,} rows were there twice and are there once now" if done.copies else ""
    merged = f"{units.format_quantity(done.merged, 'file')} with {units.format_quantity(done.rows, 'row')}"
    output.print_answer(options, dataclasses.asdict(done), f"{merged} merged into {done.parts:,}{copies}")
    for entry in done.left:
        output.print_note(f"{entry.name} was left as it is: {entry.reason}")
    return OK


def import_file(options: argparse.Namespace) -> int:
    """Add the rows of a file, or say why not."""
    report = exchange.import_file(options.file, options.file.name, Store(options.store))
    text = f"{units.format_quantity(report.added, 'row')} added, {report.duplicates:,} were there already"
    output.print_answer(options, dataclasses.asdict(report), text)
    for entry in report.refused:
        output.print_note(f"{entry.name}: {entry.reason}")
    return FAILED if report.refused else OK


def export(options: argparse.Namespace) -> int:
    """Write all rows into one file."""
    kind = options.file.suffix.lstrip(".").lower()
    if kind not in ("parquet", "csv"):
        raise InvalidValue("file", options.file.name, "a name that ends in .parquet or .csv")
    read = Store(arguments.require_store_folder(options)).read()
    try:
        atomic.write_atomically(options.file, lambda file: file.write(exchange.export(read.table, kind)))
    except OSError as error:
        raise StoreError(unwritable(str(options.file), error)) from error
    count = read.table.num_rows
    facts = {"rows": count, "file": str(options.file), "skipped": [entry.name for entry in read.skipped]}
    output.print_answer(options, facts, f"{units.format_quantity(count, 'row')} written to {options.file}")
    for entry in read.skipped:
        output.print_note(f"{entry.name} is not among them: {entry.reason}")
    return OK
