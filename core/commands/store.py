"""`store`: check, compact, import or export a folder of results."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from .. import units
from ..answer import contribution
from ..errors import ForeignFile, InvalidValue, StoreError, unwritable
from ..files import documents
from ..results import exchange
from ..results.index import Skipped
from ..results.store import Store, compact
from . import COMMAND_HELP, FAILED, OK, arguments, print_answer, print_note

MANY_FILES = 1_000
"""Number of files from which merging them is recommended."""


def add_store_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("store", help=COMMAND_HELP["store"])
    actions = parser.add_subparsers(required=True, metavar="action")
    for name, command, what in (
        ("check", check_store, "read every file and list those that are skipped"),
        ("compact", compact_store, "merge small files into few large ones, which load faster"),
        ("import", import_file, "add the rows of a parquet file from another machine"),
        ("export", export, "write all rows into one .parquet or .csv file"),
    ):
        action = actions.add_parser(name, help=what)
        if name in ("import", "export"):
            action.add_argument("file", type=Path, help=f"file to {name} (required)")
        if name == "import":
            text = "check a zip from `contribute`, and mark its rows as contributed (default: off)"
            action.add_argument("--contributed", action="store_true", help=text)
        arguments.add_options(action, "store", "json")
        action.set_defaults(command=command)


def check_store(options: argparse.Namespace) -> int:
    """Print the number of readable rows, and the name of every file that cannot be read."""
    store = Store(arguments.require_store_folder(options))
    found = store.check()
    newer = "was written by a newer version; only the columns known here were read"
    lines = [f"{units.format_quantity(found.rows, 'row')} in {store.name}"]
    lines += [f"skipped {entry.name}: {entry.reason}" for entry in found.skipped]
    lines += [f"{name} {newer}" for name in found.newer]
    if found.files >= MANY_FILES:
        lines.append(f"The rows are in {found.files:,} files. To read them faster, run: store compact")
    document = {"store": store.name, **dataclasses.asdict(found)}
    print_answer(options, document, "\n".join(lines))
    return FAILED if found.skipped else OK


def compact_store(options: argparse.Namespace) -> int:
    """Merge small files; print the names of files that were left unchanged."""
    done = compact(arguments.require_store_folder(options))
    copies = f"\n{done.copies:,} duplicate rows were removed" if done.copies else ""
    merged = f"{units.format_quantity(done.merged, 'file')} with {units.format_quantity(done.rows, 'row')}"
    print_answer(options, dataclasses.asdict(done), f"{merged} merged into {done.parts:,}{copies}")
    for entry in done.left:
        print_note(f"{entry.name} was left as it is: {entry.reason}")
    return OK


def import_file(options: argparse.Namespace) -> int:
    """Add the rows of a file, or print why it is refused."""
    take = _import_contribution if options.contributed else exchange.import_file
    report = take(options.file, options.file.name, Store(options.store))
    text = f"{units.format_quantity(report.added, 'row')} added, {report.duplicates:,} already stored"
    print_answer(options, dataclasses.asdict(report), text)
    for entry in report.refused:
        print_note(f"{entry.name}: {entry.reason}")
    return FAILED if report.refused else OK


def _import_contribution(file: Path, name: str, store: Store) -> exchange.ImportReport:
    """Add the rows of a contributed file, or return why it is refused."""
    try:
        table, origin = contribution.check_contribution(file)
    except ForeignFile as error:
        return exchange.ImportReport(refused=(Skipped(name=name, reason=str(error)),))
    return exchange.keep(exchange.propose_rows(table, origin, store), store)


def export(options: argparse.Namespace) -> int:
    """Write all rows into one file."""
    kind = options.file.suffix.lstrip(".").lower()
    if kind not in ("parquet", "csv"):
        raise InvalidValue("file", options.file.name, "a name that ends in .parquet or .csv")
    read = Store(arguments.require_store_folder(options)).read()
    try:
        documents.write_atomically(options.file, lambda file: file.write(exchange.export(read.table, kind)))
    except OSError as error:
        raise StoreError(unwritable(str(options.file), error)) from error
    count = read.table.num_rows
    facts = {"rows": count, "file": str(options.file), "skipped": [entry.name for entry in read.skipped]}
    print_answer(options, facts, f"{units.format_quantity(count, 'row')} written to {options.file}")
    for entry in read.skipped:
        print_note(f"{entry.name} is not among them: {entry.reason}")
    return OK
