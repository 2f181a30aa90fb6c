"""`machines`, and `--on` of a sweep: the machines of a Ray cluster, and the crossover that each has found."""

import argparse
import dataclasses
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from core import units
from core.answer.export import sweep_report
from core.answer.study import study
from core.answer.study.result import Basis, Crossover
from core.commands import FAILED, HELP, OK, arguments, measuring, output
from core.errors import CrossoverError, InvalidValue, one_of
from core.files.settings import WAYS, is_way
from core.jobs import client, cluster
from core.jobs.cluster_machine import SPREADS, ClusterMachine
from core.jobs.job import Elsewhere
from core.jobs.queue import Queue
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.results.store import Store


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("machines", help=HELP["machines"])
    parser.add_argument("--on", default="ray", metavar="CLUSTER", help=f"which cluster: {measuring.WHERE}")
    arguments.add(parser, "json")
    parser.set_defaults(command=machines)


def require(options: argparse.Namespace) -> None:
    """Refuse what a cluster cannot be asked; raises InvalidValue."""
    if not is_way(options.on):
        raise InvalidValue("on", options.on, "one of {}", WAYS)
    if options.devices is None:
        raise InvalidValue("devices", "", "given with --on, as machines differ: cpu@1,cpu or cpu,cuda:0")
    if options.training is not None:
        raise InvalidValue("training", options.training, "measured here: a custom script is sent to no other machine")


def machines(options: argparse.Namespace) -> int:
    """Print the machines of a cluster, by kind."""
    if not is_way(options.on):
        raise InvalidValue("on", options.on, "one of {}", WAYS)
    with cluster.connect(options.on) as connected:
        found = cluster.list_machines(connected)
    document = {"machines": list(map(dataclasses.asdict, found))}
    output.answer(options, document, "\n".join(_list_lines(found)) or "The cluster has no machine.")
    return OK if found else FAILED


def _list_lines(found: Iterable[ClusterMachine]) -> list[str]:
    lines: list[str] = []
    for kind, members in _group_machines(found, is_shared=True).items():
        counted = units.counted(len(members), "machine")
        lines += ["", f"{counted} of kind {kind}: {members[0].cpu}" if kind else f"{counted} without an answer"]
        lines += map(_describe, members)
    return lines[1:]


def _describe(machine: ClusterMachine) -> str:
    """A line for a machine, long sentences below each other."""
    threads = f"{units.counted(machine.threads, 'CPU thread')}; " if machine.threads else ""
    text = f"  {machine.host}  {machine.message or threads + ', '.join(machine.devices)}"
    columns = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(text, columns, subsequent_indent="    ")


def measure(asked: Sweep, options: argparse.Namespace, queue: Queue, store: Store) -> int:
    """Have a sweep measured by the machines of a cluster; print what each has found."""
    is_shared = one_of("spread", options.spread, SPREADS) == "shared"
    elsewhere = Elsewhere(on=options.on, spread=options.spread)
    job = measuring.follow(queue, queue.submit(asked, store, fresh=options.fresh, elsewhere=elsewhere))
    found: dict[str, list[Trial]] = {}
    for row in client.rows(queue, job):
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
    """Print the answer of every machine; of those that share the points there is one."""
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
            "answers": list(map(sweep_report.document, answers)),
        }
        documents.append(document)
    document = {"sweep_id": asked.id, **asked.to_json(), "machines": documents}
    output.answer(options, document, "\n".join(lines) or "No machine answered.")


def _group_machines(machines: Iterable[ClusterMachine], *, is_shared: bool) -> dict[str, list[ClusterMachine]]:
    """By the machine that their rows name."""
    groups: dict[str, list[ClusterMachine]] = {}
    for machine in sorted(machines, key=lambda machine: machine.host):
        groups.setdefault(machine.machine_id if is_shared else machine.own_id or machine.host, []).append(machine)
    return groups


def _find_answers(asked: Sweep, rows: list[Trial], basis: Basis) -> tuple[list[Crossover], str]:
    """The crossovers of a machine, or why there are none."""
    try:
        return [study.crossover(entry, basis) for entry in study.studies(rows, axis=asked.axes[0].name)], ""
    except CrossoverError as error:
        return [], str(error) if rows else ""
