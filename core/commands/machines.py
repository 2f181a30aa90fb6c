"""`print_devices`: the devices of this machine that can train. `machines`, and `--on` of a sweep: a Ray cluster.

The commands list the machines of a cluster, and print the crossover of each machine.
"""

import argparse
import dataclasses
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from .. import units
from ..answer import study
from ..answer.export import report
from ..answer.judgement import Basis, Crossover
from ..errors import CrossoverError, InvalidValue, require_choice
from ..files.documents import WAYS, is_way
from ..jobs import client, cluster
from ..jobs.cluster_machine import SPREADS, ClusterMachine
from ..jobs.job import RemoteTarget
from ..jobs.queue import Queue
from ..question.sweep import Sweep
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, print_answer, run


def add_machines_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("machines", help=COMMAND_HELP["machines"])
    parser.add_argument("--on", default="ray", metavar="CLUSTER", help=f"cluster: {run.WHERE} (default: ray)")
    arguments.add_options(parser, "json")
    parser.set_defaults(command=machines)


def require_cluster_question(options: argparse.Namespace) -> None:
    """Raise InvalidValue for options that a cluster does not support."""
    if not is_way(options.on):
        raise InvalidValue("on", options.on, "one of {}", WAYS)
    if options.devices is None:
        raise InvalidValue("devices", "", "given with --on, as machines differ: cpu@1,cpu or cpu,cuda:0")
    if options.wait_for_quiet:
        raise InvalidValue("wait-for-quiet", options.wait_for_quiet, "omitted with --on; each machine measures at once")
    if options.training is not None:
        raise InvalidValue("training", options.training, "measured here: a custom script is sent to no other machine")


def machines(options: argparse.Namespace) -> int:
    """Print the machines of a cluster, by kind."""
    if not is_way(options.on):
        raise InvalidValue("on", options.on, "one of {}", WAYS)
    with cluster.connect(options.on) as connected:
        found = cluster.list_machines(connected)
    document = {"machines": list(map(dataclasses.asdict, found))}
    print_answer(options, document, "\n".join(_list_lines(found)) or "The cluster has no machine.")
    return OK if found else FAILED


def _list_lines(found: Iterable[ClusterMachine]) -> list[str]:
    lines: list[str] = []
    for kind, members in _group_machines(found, is_shared=True).items():
        counted = units.format_quantity(len(members), "machine")
        lines += ["", f"{counted} of kind {kind}: {members[0].cpu}" if kind else f"{counted} without an answer"]
        lines += map(_describe, members)
    return lines[1:]


def _describe(machine: ClusterMachine) -> str:
    """Describe a machine in a line, with long sentences on separate lines."""
    threads = f"{units.format_quantity(machine.threads, 'CPU thread')}; " if machine.threads else ""
    text = f"  {machine.host}  {machine.message or threads + ', '.join(machine.devices)}"
    columns = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(text, columns, subsequent_indent="    ")


def measure_on_cluster(asked: Sweep, options: argparse.Namespace, queue: Queue, store: Store) -> int:
    """Measure a sweep on the machines of a cluster, and print the results of each."""
    is_shared = require_choice("spread", options.spread, SPREADS) == "shared"
    elsewhere = RemoteTarget(on=options.on, spread=options.spread)
    job = run.show_job_progress(queue, queue.submit(asked, store, fresh=options.fresh, elsewhere=elsewhere))
    found: dict[str, list[Trial]] = {}
    for row in client.load_job_rows(queue, job):
        found.setdefault(row.machine_id, []).append(row)
    groups = _group_machines(job.machines, is_shared=is_shared)
    _show(asked, groups, found, options)
    is_complete = all(any(machine.state == "finished" for machine in group) for group in groups.values())
    return OK if found and is_complete and job.state == "finished" else FAILED


def _show(
    asked: Sweep,
    groups: Mapping[str, list[ClusterMachine]],
    found: Mapping[str, list[Trial]],
    options: argparse.Namespace,
) -> None:
    """Print the answer of every machine; machines that share the points have one common answer."""
    basis: Basis = options.basis or "steady"
    lines, documents = [], []
    for rows_id, group in groups.items():
        rows = found.get(rows_id, [])
        answers, why = _find_answers(asked, rows, basis)
        said = [answer.sentence for answer in answers] or list(filter(None, [why]))
        names = ", ".join(machine.host for machine in group)
        troubles = " ".join(dict.fromkeys(machine.message for machine in group if machine.message))
        lines.append(f"{names} ({group[0].cpu}): {' '.join(said) or troubles or 'nothing was measured.'}")
        document = {
            "members": list(map(dataclasses.asdict, group)),
            "points": len({row.experiment_id for row in rows}),
            "crossovers": said,
            "answers": list(map(report.crossover_document, answers)),
        }
        documents.append(document)
    document = {"sweep_id": asked.id, **asked.to_json(), "machines": documents}
    print_answer(options, document, "\n".join(lines) or "No machine answered.")


def _group_machines(machines: Iterable[ClusterMachine], *, is_shared: bool) -> dict[str, list[ClusterMachine]]:
    """Group machines by the machine that their rows name."""
    groups: dict[str, list[ClusterMachine]] = {}
    for machine in sorted(machines, key=lambda machine: machine.host):
        groups.setdefault(machine.machine_id if is_shared else machine.own_id or machine.host, []).append(machine)
    return groups


def _find_answers(asked: Sweep, rows: list[Trial], basis: Basis) -> tuple[list[Crossover], str]:
    """Return the crossovers of a machine, or why there are none."""
    try:
        return [entry.crossover(basis) for entry in study.studies(rows, axis=asked.axes[0].name)], ""
    except CrossoverError as error:
        return [], str(error) if rows else ""


def add_devices_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("devices", help=COMMAND_HELP["devices"])
    arguments.add_options(parser, "json")
    parser.set_defaults(command=print_devices)


def print_devices(options: argparse.Namespace) -> int:
    """Print the machine, its devices, and instructions for a missing device."""
    machine = run.require_machine(Queue())
    about = machine.environment
    lines = [
        f"{about.cpu_name}, {about.cores_usable} of {about.cores} threads usable, {about.system}",
        f"Python {about.python_version}, torch {about.torch_version}",
        *(f"{i.device:8} {i.kind:5} {i.name}{', ' + i.driver if i.driver else ''}" for i in machine.devices),
        machine.hint,
    ]
    print_answer(options, machine.to_json(), "\n".join(lines))
    return OK
