"""`print_crossover`: from which size on the challenger is faster, from a folder of results or one's own timings."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answer import study, timings_csv
from ..answer.export import report
from ..answer.result import DECIDED
from ..answer.study import Study
from ..errors import CrossoverError, InvalidValue, StoreError, require_choice
from ..question import catalog, models
from ..question.experiment import Contender
from ..question.fields import SIZE_AXES
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, USAGE, arguments, output

if TYPE_CHECKING:
    from ..answer.gallery.overview import StudyLine

NARROWED_BY = ("dataset", "model", "machine", "study")
"""Options that choose among the studies of a store."""

SHOWN = 20
"""Studies that are listed where several remain."""


def add_crossover_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("crossover", help=COMMAND_HELP["crossover"])
    source = parser.add_mutually_exclusive_group()
    arguments.add_options(source, "store")
    source.add_argument("--csv", type=Path, help="timings: columns size, device, seconds, or size and one a device")
    parser.add_argument("--axis", help=f"what is varied: {', '.join(SIZE_AXES)}; with --csv any name")
    parser.add_argument("--devices", help="the two to compare, comma-separated; a CPU is the baseline")
    arguments.add_options(parser, "basis")
    parser.add_argument("--dataset", choices=tuple(catalog.DATASETS))
    parser.add_argument("--model", choices=tuple(models.FAMILIES))
    parser.add_argument("--machine", help="first characters of a machine's id")
    parser.add_argument("--study", help="first characters of a study's id, as they are listed where several are found")
    arguments.add_options(parser, "json")
    parser.set_defaults(command=print_crossover)


def print_crossover(options: argparse.Namespace) -> int:
    """Print the answer of a file or of the one study that the options leave."""
    devices = _two(options.devices)
    if options.csv is not None:
        return _answer_from_file(options, devices)
    axis = _size_axis(options.axis)
    store = Store(arguments.require_store_folder(options))
    found = _find_studies(store, options, axis, devices)
    if not found:
        output.print_note(
            f"{options.store} holds no two sizes that differ in nothing else{_describe_filters(options)}."
        )
        return FAILED
    if len(found) > 1:
        return _list_choices(store, found)
    answer = study.crossover(_load_study(store, found[0]), options.basis or "steady")
    output.print_answer(
        options, report.crossover_document(answer) | {"study": found[0].id}, report.crossover_text(answer)
    )
    return OK


def _answer_from_file(options: argparse.Namespace, devices: tuple[str, str] | None) -> int:
    if given := [name for name in NARROWED_BY if getattr(options, name) is not None]:
        raise InvalidValue("csv", str(options.csv), f"given without --{given[0]}, which chooses among rows of a store")
    try:
        with options.csv.open("rb") as file:
            data = file.read(timings_csv.MAX_TIMINGS_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{options.csv} cannot be read: {error.strerror or error}.") from error
    read = timings_csv.read_timings(data, options.csv.name, devices=devices)
    answer = timings_csv.timings_crossover(
        read, axis=options.axis or timings_csv.SIZE, basis=options.basis or "as_given"
    )
    document = report.crossover_document(answer) | {"file": options.csv.name, "notes": list(read.notes)}
    output.print_answer(options, document, report.crossover_text(answer, notes=read.notes))
    return OK


def _two(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InvalidValue("devices", text, "two different devices with a comma, the baseline first: cpu,cuda:0")
    return names[0], names[1]


def _size_axis(name: str | None) -> str | None:
    return require_choice("axis", name.replace("-", "_"), SIZE_AXES) if name else None


def _find_studies(
    store: Store, options: argparse.Namespace, axis: str | None, devices: tuple[str, str] | None
) -> "list[StudyLine]":
    """The studies that are asked for; files that could not be read are named."""
    from ..answer.gallery import overview  # with pandas, which no other command needs

    held = overview.load_overview([(store, "measured here")])
    for entry in held.skipped:
        output.print_note(f"{entry.name} was skipped: {entry.reason}.")
    if held.left_out:
        output.print_note(f"Only the newest {len(held.frame):,} trials are searched; {held.left_out:,} are older.")
    frame = held.frame
    frame = frame.loc[[name.startswith(options.machine or "") for name in frame["machine_id"].astype(str)]]
    for name in ("dataset", "model"):
        if (wanted := getattr(options, name)) is not None:
            frame = frame[frame[name] == wanted]
    found = overview.find_study_lines(frame.reset_index(drop=True), axis=axis)
    found = [line for line in found if line.id.startswith(options.study or "")]
    wanted = {str(Contender.parse(name)) for name in devices} if devices else None
    return [line for line in found if wanted in (None, {line.baseline, line.challenger})]


def _load_study(store: Store, line: "StudyLine") -> Study:
    return study.find_study(line.id, store.trials(trial_id=line.trial_ids), line.axis)


def _list_choices(store: Store, lines: "Sequence[StudyLine]") -> int:
    narrow = "--study, --axis, --devices, --dataset, --model or --machine"
    output.print_note(f"{len(lines)} studies are stored; choose one of them with {narrow}:")
    for shown in sorted((_load_study(store, entry) for entry in lines[:SHOWN]), key=_is_undecided):
        output.print_note(report.study_line(shown))
    if len(lines) > SHOWN:
        output.print_note(f"and {len(lines) - SHOWN} more")
    return USAGE


def _is_undecided(candidate: Study) -> bool:
    """Whether a study says of no size who is faster, so that others come first."""
    try:
        return study.crossover(candidate).outcome not in DECIDED
    except CrossoverError:
        return True


def _describe_filters(options: argparse.Namespace) -> str:
    """The options that narrowed the store to nothing, in words."""
    names = ("axis", "devices", *NARROWED_BY)
    given = [f"--{name} {value}" for name in names if (value := getattr(options, name)) is not None]
    return f" with {' '.join(given)}" if given else ""
