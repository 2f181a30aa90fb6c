"""`contribute`: measure this machine for five minutes and write one file that can be sent in.

The command sends nothing. It shows the contents of the file before writing it.
"""

import argparse
import dataclasses
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..answer import contribution
from ..answer.export.run_files import training_script
from ..errors import CrossoverError, InvalidValue, StoreError, unwritable
from ..files import documents
from ..files.project import PACKAGE, START_FOLDER
from ..jobs import client
from ..jobs.machine import Machine
from ..jobs.queue import Queue
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, print_note, print_result, run

LEAST_BUDGET_S = 5.0
"""Minimum budget of a training in seconds, even if earlier trainings exceeded their budgets."""

SELF_CHECK_S, SCRIPT_S = 90.0, 120.0
"""Timeouts of the self-check and of the script, in seconds; both take some ten seconds."""


def add_contribute_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("contribute", help=COMMAND_HELP["contribute"])
    parser.add_argument("--device", help="accelerator to measure (default: the first one found)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", default=Path(), help="folder of the file (default: .)")
    parser.add_argument("--yes", action="store_true", help="write the file without asking (default: off)")
    parser.set_defaults(command=contribute)


def contribute(options: argparse.Namespace) -> int:
    """Measure, show the contents of the file, request confirmation, and write it."""
    if not options.output.is_dir():
        raise InvalidValue("output", str(options.output), "a folder that exists")
    began, queue = time.monotonic(), Queue()
    machine = run.require_machine(queue)
    device = _choose_device(options.device, machine)
    print_note(f"This measures {machine.device_names[device]} for about five minutes. Nothing is sent.")
    with tempfile.TemporaryDirectory() as folder:
        trials = _measure(machine, device, queue, Store(Path(folder) / "store"))
        devices = sorted({trial.device for trial in trials})
        checks = {
            "devices": {name: check_device(name) for name in devices},
            "script": run_script([trial for trial in trials if _is_scripted(trial)], Path(folder)),
            "seconds": round(time.monotonic() - began),
        }
    facts = describe_machine(machine, devices)
    data = contribution.pack_contribution(trials, facts, checks)
    print_result(contribution.describe_contribution(data))
    file = options.output / name_file(machine.device_names[device])
    if not (options.yes or _agrees(file)):
        print_note("Nothing was written.")
        return FAILED
    try:
        documents.write_atomically(file, lambda opened: opened.write(data))
    except OSError as error:
        raise StoreError(unwritable(str(file), error)) from error
    print_result(f"Written: {file}\n{say_where_to_send()}")
    return OK


def _choose_device(asked: str | None, machine: Machine) -> str:
    """Return the requested accelerator or the first one; the CPU if there is none."""
    found = [info.device for info in machine.devices]
    if asked is not None and asked not in found:
        raise InvalidValue("device", asked, f"one of this machine: {', '.join(found)}")
    return asked or next((device for device in found if device != "cpu"), "cpu")


def _measure(machine: Machine, device: str, queue: Queue, store: Store) -> list[Trial]:
    """Return the rows of all trainings; a training that fails is reported and left out."""
    has_graphs = device != "cpu" and "graph" not in machine.refusals.get(device, {})
    planned = list(contribution.plan_experiments(device, machine.environment.cores_usable, has_graphs=has_graphs))
    trials: list[Trial] = []
    ends = time.monotonic() + contribution.TOTAL_S
    for number, (name, experiment) in enumerate(planned, 1):
        print_note(f"{number} of {len(planned)}: {name}")
        left_s = (ends - time.monotonic()) / (len(planned) - number + 1)
        asked = dataclasses.replace(experiment, budget_s=max(LEAST_BUDGET_S, left_s))
        job = run.show_job_progress(queue, queue.submit(asked, store, fresh=True))
        if job.state == "stopped":
            raise CrossoverError("Stopped. Nothing was written.")
        if not job.complete:
            print_note(f"{name} is left out: {job.message}")
            continue
        rows = client.load_job_rows(queue, job)
        if min(len(row.step_s) for row in rows) < contribution.PAIRS:
            print_note(f"{name} is left out: it is too slow or too large here.")
            continue
        trials += rows
    if not trials:
        raise CrossoverError("Nothing could be measured, so there is nothing to write.")
    return trials


def check_device(device: str) -> dict[str, float]:
    """Return the maximum performance of a device, measured in a separate process.

    Raises:
        CrossoverError: the process failed.
    """
    command = [sys.executable, "-m", f"{PACKAGE.name}.measure.preflight", device]
    try:
        done = subprocess.run(
            command, cwd=START_FOLDER, capture_output=True, text=True, timeout=SELF_CHECK_S, check=True
        )
        return {str(name): float(value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise CrossoverError(f"The self-check of {device} failed: {error}") from error


def _is_scripted(trial: Trial) -> bool:
    point = contribution.TRAININGS[contribution.SCRIPTED]
    return (trial.dataset, trial.depth) == (point.dataset, point.depth)


def run_script(trials: Sequence[Trial], folder: Path) -> dict[str, float]:
    """Return the time per step in the standalone script of rows, relative to the time in the rows, by contender."""
    if not trials:
        return {}
    file = folder / "script.py"
    file.write_text(training_script(trials), encoding="utf-8")
    command = [sys.executable, str(file), "--pairs", str(contribution.PAIRS)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SCRIPT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print_note(f"The script without Crossover failed, so it is left out: {error}")
        return {}
    names = {trial.contender for trial in trials}
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0]: round(float(words[2]) / float(words[1]), 4) for words in lines if words and words[0] in names}


def describe_machine(machine: Machine, devices: Sequence[str]) -> dict[str, Any]:
    """Return the facts of a machine, without its name, its user, paths or addresses."""
    about = machine.environment
    return {
        "commit": about.app_commit,
        "cpu": about.cpu_name,
        "threads": about.cores,
        "threads_usable": about.cores_usable,
        "memory_bytes": about.memory_bytes,
        "system": about.system,
        "python": about.python_version,
        "torch": about.torch_version,
        "devices": {info.device: info.name for info in machine.devices if info.device in devices},
        "drivers": {info.device: info.driver for info in machine.devices if info.device in devices and info.driver},
    }


def name_file(device_name: str) -> str:
    """Return the name of the file: the card and the minute in UTC."""
    card = re.sub(r"[^0-9a-z]+", "-", device_name.lower()).strip("-")[:40] or "device"
    return f"crossover-{card}-{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d-%H%M}.zip"


def _agrees(file: Path) -> bool:
    """Request confirmation on the terminal; no answer means no."""
    sys.stderr.write(f"\nWrite {file}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def say_where_to_send() -> str:
    """Return a sentence on where to upload the file."""
    address = contribution.find_form_address()
    if not address:
        return "To send it, open an issue in the project's repository with the form “Contribute a measurement”."
    return f"To send it, open {address} and drop the file there."
