"""The command line: `python -m core`. Parses, asks the same core as the pages, prints.

Results go to stdout, progress and errors to stderr. Exit status 0 on success, 2 on a usage error, 1 on a failed run.
Runs without Streamlit and Altair.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from core import catalog, experiment, models, presets
from core.answer import digest
from core.errors import CrossoverError, InvalidValue, JobError, StoreError
from core.experiment import Contender, Experiment, Point
from core.jobs import runner
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import Queue
from core.results import environment, exchange
from core.results.schema import Trial
from core.results.store import RESULTS, Store

OK, FAILED, USAGE = 0, 1, 2

MACHINE_TIMEOUT_S = 180
"""A cold start of PyTorch from a slow disk takes a minute; after three something is wrong."""

POINT_FIELDS = {field.name: field for field in dataclasses.fields(Point)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
    except InvalidValue as error:
        return _complain(error, USAGE)
    except CrossoverError as error:
        return _complain(error, FAILED)
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core", description="When does training on a GPU start to pay off?")
    commands = parser.add_subparsers(required=True, metavar="command")

    devices = commands.add_parser("devices", help="what this machine can train on")
    devices.add_argument("--json", action="store_true", help="print one JSON document")
    devices.set_defaults(command=_devices)

    run = commands.add_parser("run", help="train one model on several devices and compare")
    _add_point(run)
    run.add_argument("--devices", help="comma-separated, the baseline first: cpu,cuda:0; cpu@1 is one thread")
    run.add_argument("--budget", dest="budget_s", type=float, default=60.0, help="seconds of training (default 60)")
    run.add_argument("--store", type=Path, default=RESULTS, help=f"folder of results (default {_shown(RESULTS)})")
    run.add_argument("--fresh", action="store_true", help="measure again even if the store knows the answer")
    run.add_argument("--json", action="store_true", help="print one JSON document")
    run.set_defaults(command=_run)

    store = commands.add_parser("store", help="check, import or export a folder of results")
    actions = store.add_subparsers(required=True, metavar="action")
    for name, command, what in (
        ("check", _store_check, "read every file and name those that are skipped"),
        ("import", _store_import, "add the rows of a parquet file from another machine"),
        ("export", _store_export, "write all rows into one .parquet or .csv file"),
    ):
        action = actions.add_parser(name, help=what)
        if name != "check":
            action.add_argument("file", type=Path)
        action.add_argument("--store", type=Path, default=RESULTS, help=f"default {_shown(RESULTS)}")
        action.add_argument("--json", action="store_true", help="print one JSON document")
        action.set_defaults(command=command)
    return parser


def _add_point(parser: argparse.ArgumentParser) -> None:
    """One option for each field of a point; left out, the preset's or the default value holds."""
    parser.add_argument("--preset", choices=sorted(presets.PRESETS), help="settings of one of the four tutorials")
    choices = {
        "dataset": tuple(catalog.DATASETS),
        "model": tuple(models.FAMILIES),
        "data_path": tuple(experiment.DATA_PATHS),
        "shuffle": ("true", "false"),
    }
    for name, field in POINT_FIELDS.items():
        low_high = experiment.RANGES.get(name)
        span = f"{low_high[0]:g} to {low_high[1]:g}" if low_high else ""
        parser.add_argument(
            f"--{name.replace('_', '-')}", choices=choices.get(name), help=f"{span} (default {field.default})".strip()
        )


def _run(options: argparse.Namespace) -> int:
    point = _point(options)
    queue, store = Queue(), Store(options.store)
    asked = Experiment(point=point, contenders=_contenders(options.devices, queue), budget_s=options.budget_s)
    known, last = environment.read(), runner.machine(queue)
    stored = store.find(
        asked,
        machine_id=known.machine_id,
        torch_version=known.torch_version,
        device_names=last.device_names if last else {},
    )
    if stored and not options.fresh:
        _say(f"Answered from {options.store}: measured {stored[0].started_at}. Use --fresh to measure again.")
        return _show(stored, options, from_store=True)
    job = _follow(queue, queue.submit(asked, store, fresh=options.fresh))
    trials = runner.rows(queue, job)
    if job.message:
        _say(job.message)
    if trials:
        _show(trials, options, from_store=False)
    return OK if trials and job.state == "finished" else FAILED


def _point(options: argparse.Namespace) -> Point:
    given = {name: value for name in POINT_FIELDS if (value := getattr(options, name)) is not None}
    if options.preset is None:
        return Point.parse(given)
    base = dataclasses.asdict(presets.preset(options.preset).point)
    if {"dataset", "model"} & given.keys():
        raise InvalidValue("preset", options.preset, "given without --dataset and --model, which it sets itself")
    return Point.parse({name: value for name, value in {**base, **given}.items() if name not in models.AXES or value})


def _contenders(text: str | None, queue: Queue) -> tuple[Contender, ...]:
    """As asked for; otherwise the CPU against the first accelerator, or one thread against the best without one."""
    if text is not None:
        return tuple(Contender.parse(part) for part in text.split(","))
    accelerators = [info.device for info in _machine(queue).devices if info.kind != "cpu"]
    return tuple(map(Contender.parse, ("cpu", accelerators[0]) if accelerators else ("cpu@1", "cpu")))


def _follow(queue: Queue, job: Job) -> Job:
    """Show progress on stderr until the job has ended; an interrupt from the keyboard stops it."""
    with tqdm(total=1.0, file=sys.stderr, bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}") as bar:

        def show(now: Job) -> None:
            bar.set_description_str(_phase(now), refresh=False)
            bar.n = _done(now)
            bar.refresh()

        try:
            return runner.follow(queue, job.id, show)
        except KeyboardInterrupt:
            return runner.stop(queue, job.id)


def _phase(job: Job) -> str:
    if job.state == "queued":
        return job.message or f"waiting, place {job.place} in the queue"
    return job.progress.phase if job.progress else job.state


def _done(job: Job) -> float:
    """Share of the training that is done, 0 to 1."""
    if not job.active:
        return 1.0
    contenders = job.progress.contenders if job.progress else ()
    shares = [entry.steps / entry.total_steps for entry in contenders if entry.total_steps]
    return sum(shares) / len(shares) if shares else 0.0


def _show(trials: list[Trial], options: argparse.Namespace, *, from_store: bool) -> int:
    if options.json:
        _print_json(digest.document(trials, from_store=from_store))
    else:
        print(digest.text(trials), end="")
    return OK


def _devices(options: argparse.Namespace) -> int:
    machine = _machine(Queue())
    if options.json:
        _print_json(machine.to_json())
        return OK
    about = machine.environment
    print(f"{about.cpu_name}, {about.cores_usable} of {about.cores} threads usable, {about.system}")
    print(f"Python {about.python_version}, torch {about.torch_version}")
    for info in machine.devices:
        print(f"{info.device:8} {info.kind:5} {info.name}{', ' + info.driver if info.driver else ''}")
    if machine.hint:
        print(machine.hint)
    return OK


def _machine(queue: Queue) -> Machine:
    """What the measuring process sees; starts it if need be."""
    deadline = time.monotonic() + MACHINE_TIMEOUT_S
    while time.monotonic() < deadline:
        machine = runner.machine(queue)
        if machine and machine.live:
            return machine
        runner.ensure_worker(queue)
        time.sleep(0.1)
    raise JobError(f"The measuring process did not start within {MACHINE_TIMEOUT_S} s; {queue.seat.log} says more.")


def _store_check(options: argparse.Namespace) -> int:
    contents = Store(options.store).read()
    skipped = [dataclasses.asdict(entry) for entry in contents.skipped]
    if options.json:
        _print_json({"rows": contents.table.num_rows, "skipped": skipped, "newer": list(contents.newer)})
    else:
        print(f"{contents.table.num_rows} rows in {options.store}")
        for entry in contents.skipped:
            print(f"skipped {entry.name}: {entry.reason}")
        for name in contents.newer:
            print(f"{name} was written by a newer version; the columns known here were read")
    return FAILED if skipped else OK


def _store_import(options: argparse.Namespace) -> int:
    report = exchange.import_file(options.file, options.file.name, Store(options.store))
    if options.json:
        _print_json(dataclasses.asdict(report))
    else:
        print(f"{report.added} rows added, {report.duplicates} were there already")
    for entry in report.refused:
        _say(f"{entry.name}: {entry.reason}")
    return FAILED if report.refused else OK


def _store_export(options: argparse.Namespace) -> int:
    kind = options.file.suffix.lstrip(".").lower()
    if kind not in ("parquet", "csv"):
        raise InvalidValue("file", options.file.name, "a name that ends in .parquet or .csv")
    table = Store(options.store).read().table
    try:
        options.file.write_bytes(exchange.export(table, kind))
    except OSError as error:
        raise StoreError(f"{options.file} cannot be written: {error.strerror}.") from error
    if options.json:
        _print_json({"rows": table.num_rows, "file": str(options.file)})
    else:
        print(f"{table.num_rows} rows written to {options.file}")
    return OK


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, default=str))


def _complain(error: CrossoverError, status: int) -> int:
    _say(str(error))
    return status


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _shown(folder: Path) -> Path:
    """A folder of the project as its user would type it."""
    root = Path(__file__).parent.parent
    return folder.relative_to(root) if folder.is_relative_to(root) else folder


if __name__ == "__main__":
    sys.exit(main())
