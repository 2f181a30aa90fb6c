"""`print_crossover`: the size from which a device is faster; `print_sizes`: the faster device at given sizes.

`print_choices`: whether a GPU that is not available would be faster, predicted from the times of this CPU.
"""

import argparse
import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answer import crossover, study, text_table, timings_csv
from ..answer.export import report
from ..answer.judgement import DECIDED
from ..answer.study import Study
from ..errors import CrossoverError, ForeignFile, InvalidValue, StoreError, require_choice
from ..question import catalog, models
from ..question.experiment import Contender
from ..question.fields import SIZE_AXES
from ..results import environment
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, USAGE, arguments, print_answer, print_note

if TYPE_CHECKING:
    from ..answer.gallery.overview import StudyLine

NARROWED_BY = ("dataset", "model", "machine", "study")
"""Options that select among the studies of a store."""

TABLE_ROLES = ("size", "time", "device")
"""Columns of a table of timings that can be named by options."""

TABLE_OPTIONS = "Name the columns with --size-column, --time-column, --device-column and --unit."

SHOWN = 20
"""Maximum number of studies that are listed if several remain."""


def add_crossover_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("crossover", help=COMMAND_HELP["crossover"])
    rule = "print this machine's crossover as a rule for other programs, see examples/rule (default: its answer)"
    parser.add_argument("rule", nargs="?", choices=("rule",), help=rule)
    source = parser.add_mutually_exclusive_group()
    arguments.add_options(source, "store")
    source.add_argument(
        "--csv",
        type=Path,
        help="timings as a table (columns size, device, seconds, or size and one per device), or the JSON export of "
        "hyperfine, pytest-benchmark, pyperf or Google Benchmark; - reads standard input (default: the store)",
    )
    parser.add_argument(
        "--axis", help=f"setting that varies: {', '.join(SIZE_AXES)}; with --csv any column (default: detected)"
    )
    for role in TABLE_ROLES:
        parser.add_argument(
            f"--{role}-column", metavar="TITLE", help=f"with --csv: title of the column of {role}s (default: detected)"
        )
    parser.add_argument("--unit", help="with --csv: unit of times that name none: s, ms, us, ns, min, h (default: s)")
    parser.add_argument(
        "--devices", help="the two devices to compare, the baseline first (default: a CPU and the other device)"
    )
    arguments.add_options(parser, "basis")
    _add_filters(parser)
    arguments.add_options(parser, "json")
    parser.set_defaults(command=print_crossover)


def add_at_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("at", help=COMMAND_HELP["at"])
    parser.add_argument(
        "--sizes", required=True, help="sizes to answer for, comma-separated, as in 64,512,4096 (required)"
    )
    arguments.add_options(parser, "store")
    parser.add_argument("--axis", help=f"setting that varies: {', '.join(SIZE_AXES)} (default: any that is stored)")
    parser.add_argument("--devices", help="the two devices to compare, comma-separated (default: any)")
    arguments.add_options(parser, "basis")
    _add_filters(parser)
    arguments.add_options(parser, "json")
    parser.set_defaults(command=print_sizes)


def print_sizes(options: argparse.Namespace) -> int:
    """Print the faster device of a stored study at each size, with the speedup, its interval, and its basis."""
    sizes = [_parse_size(text) for text in options.sizes.split(",")]
    chosen, status = _choose_study(options, _two(options.devices))
    if chosen is None:
        return status
    answer = chosen.crossover(options.basis or "steady")
    evidence = chosen.evidence(options.basis or "steady")
    entries = [crossover.speedup_at(evidence, answer, size) for size in sizes]
    document = {"study": chosen.id, "axis": answer.axis, "sizes": [dataclasses.asdict(entry) for entry in entries]}
    print_answer(options, document, report.sizes_text(entries, answer))
    return OK


def _parse_size(text: str) -> float:
    size = arguments.parse_number_option(text) if text.strip() else 0.0
    if not 0 < size < math.inf:
        raise InvalidValue("sizes", text, "numbers above 0, separated by commas: 64,512,4096")
    return size


def _add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose among the studies of a store."""
    parser.add_argument("--dataset", choices=tuple(catalog.DATASETS), help="data set of the study (default: any)")
    parser.add_argument("--model", choices=tuple(models.FAMILIES), help="model of the study (default: any)")
    parser.add_argument("--machine", help="first characters of the machine ID (default: any)")
    parser.add_argument("--study", help="first characters of the study ID, as listed if several match (default: any)")


def print_crossover(options: argparse.Namespace) -> int:
    """Print the answer of a file, or of the only study that matches the options."""
    devices = _two(options.devices)
    if options.csv is not None and options.rule:
        raise InvalidValue("csv", str(options.csv), "omitted for a rule, which uses only rows measured on this machine")
    if options.csv is not None:
        return _answer_from_file(options, devices)
    if options.rule and options.machine is None:
        options.machine = environment.read_environment().machine_id
    chosen, status = _choose_study(options, devices)
    if chosen is None:
        return status
    answer = chosen.crossover(options.basis or "steady")
    if options.rule:
        document = report.rule_document(chosen, answer)
        print_answer(options, document, report.rule_text(document))
        return OK
    print_answer(options, report.crossover_document(answer) | {"study": chosen.id}, report.crossover_text(answer))
    return OK


def _choose_study(options: argparse.Namespace, devices: tuple[str, str] | None) -> tuple[Study | None, int]:
    """Return the only study that matches the options, or else None and the exit status after printing a message."""
    axis = _size_axis(options.axis)
    store = Store(arguments.require_store_folder(options))
    found = _find_studies(store, options, axis, devices)
    if not found:
        print_note(f"{store.name} has no two sizes that differ in nothing else{_describe_filters(options)}.")
        return None, FAILED
    if len(found) > 1:
        return None, _list_choices(store, found)
    return _load_study(store, found[0]), OK


def _answer_from_file(options: argparse.Namespace, devices: tuple[str, str] | None) -> int:
    if given := [name for name in NARROWED_BY if getattr(options, name) is not None]:
        raise InvalidValue("csv", str(options.csv), f"given without --{given[0]}, which chooses among rows of a store")
    name = "standard input" if str(options.csv) == "-" else options.csv.name
    columns = timings_csv.TableColumns(
        **{role: getattr(options, f"{role}_column") or "" for role in TABLE_ROLES},
        axis=options.axis or "",
        unit=options.unit or "",
    )
    try:
        read = timings_csv.read_timings(_read_bytes(options.csv), name, devices=devices, columns=columns)
    except timings_csv.ColumnsUnclear as unclear:
        raise ForeignFile(f"{unclear} {TABLE_OPTIONS}") from None
    answer = timings_csv.timings_crossover(read, axis=options.axis or "", basis=options.basis or "as_given")
    document = report.crossover_document(answer) | {"file": name, "notes": list(read.notes)}
    print_answer(options, document, report.crossover_text(answer, notes=read.notes))
    return OK


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file or of standard input, up to the limit."""
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(text_table.MAX_TIMINGS_BYTES + 1)
        with path.open("rb") as file:
            return file.read(text_table.MAX_TIMINGS_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error


def _two(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InvalidValue(
            "devices", text, "two different devices, separated by a comma, the baseline first: cpu,cuda:0"
        )
    return names[0], names[1]


def _size_axis(name: str | None) -> str | None:
    return require_choice("axis", name.replace("-", "_"), SIZE_AXES) if name else None


def _find_studies(
    store: Store, options: argparse.Namespace, axis: str | None, devices: tuple[str, str] | None
) -> "list[StudyLine]":
    """Find the requested studies; print a note for each file that could not be read."""
    import numpy as np  # no other command needs these
    import pyarrow as pa

    from ..answer.gallery import overview

    held = overview.load_overview([(store, "measured here")])
    for entry in held.skipped:
        print_note(f"{entry.name} was skipped: {entry.reason}.")
    if held.left_out:
        print_note(f"Only the newest {held.table.num_rows:,} trials are searched; {held.left_out:,} are older.")
    table = held.table
    chosen = np.array([name.startswith(options.machine or "") for name in table["machine_id"].to_pylist()], dtype=bool)
    for name in ("dataset", "model"):
        if (wanted := getattr(options, name)) is not None:
            chosen &= np.array([value == wanted for value in table[name].to_pylist()], dtype=bool)
    found = overview.find_study_lines(table.filter(pa.array(chosen)), axis=axis)
    found = [line for line in found if line.id.startswith(options.study or "")]
    wanted = {str(Contender.parse(name)) for name in devices} if devices else None
    return [line for line in found if wanted in (None, {line.baseline, line.challenger})]


def _load_study(store: Store, line: "StudyLine") -> Study:
    return study.find_study(line.id, store.trials(trial_id=line.trial_ids), line.axis)


def _list_choices(store: Store, lines: "Sequence[StudyLine]") -> int:
    narrow = "--study, --axis, --devices, --dataset, --model or --machine"
    print_note(f"{len(lines)} studies are stored; choose one of them with {narrow}:")
    for shown in sorted((_load_study(store, entry) for entry in lines[:SHOWN]), key=_is_undecided):
        print_note(report.study_line(shown))
    if len(lines) > SHOWN:
        print_note(f"and {len(lines) - SHOWN} more")
    return USAGE


def _is_undecided(candidate: Study) -> bool:
    """Return whether a study has no winner at any size; such studies are listed last."""
    try:
        return candidate.crossover().outcome not in DECIDED
    except CrossoverError:
        return True


def _describe_filters(options: argparse.Namespace) -> str:
    """Describe the options that no study of the store matches."""
    names = ("axis", "devices", *NARROWED_BY)
    given = [f"--{name} {value}" for name in names if (value := getattr(options, name)) is not None]
    return f" with {' '.join(given)}" if given else ""


def add_choose_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    from ..answer import predict  # only for this command

    parser = commands.add_parser("choose", help=COMMAND_HELP["choose"])
    arguments.add_point(parser)
    keys = ", ".join(card.key for card in predict.list_cards())
    parser.add_argument("--gpu", help=f"cards to predict, comma-separated (default: all): {keys}")
    parser.add_argument("--price", help="prices per hour, as cpu=0.20,gpu=0.79 or by card (default: none)")
    parser.add_argument("--machine", help="first characters of the id of the CPU's machine (default: this machine)")
    arguments.add_options(parser, "store", "json")
    parser.set_defaults(command=print_choices)


def print_choices(options: argparse.Namespace) -> int:
    """Print a prediction for each card; nothing is measured, and an inconclusive prediction is a valid result."""
    from ..answer import predict, training_cost  # only for this command

    point = arguments.point(options)
    cards = options.gpu or ",".join(card.key for card in predict.list_cards())
    store = Store(arguments.require_store_folder(options))
    rows = store.trials(machine_id=_machine(options.machine, store))
    made = training_cost.choose(point, cards, rows, prices=options.price or "")
    document = {"training": point.to_json(), "choices": [choice.to_json() for choice in made]}
    print_answer(options, document, "\n\n".join("\n".join(choice.sentences) for choice in made))
    return OK


def _machine(begins: str | None, store: Store) -> str:
    """Return the machine whose CPU is compared; raises InvalidValue if the store has none or several of that name."""
    if begins is None:
        return environment.read_environment().machine_id
    found = sorted({str(name) for name in store.rows()["machine_id"].to_pylist() if str(name).startswith(begins)})
    if len(found) != 1:
        raise InvalidValue("machine", begins, "the first characters of the id of one machine of the store")
    return found[0]
