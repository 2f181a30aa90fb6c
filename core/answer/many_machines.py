"""One question on many machines: the rows of each, and the crossover that each has found.

Machines never mix: rows of each make a study of their own, and what is said of all of them is a list. Machines that
are alike are one where they share points, as their rows bear one `machine_id`; where each answers for itself, its rows
bear one of its own.
"""

from collections.abc import Collection, Iterable, Sequence

from .. import units
from ..question.sweep import Sweep
from ..results.schema import Trial
from ..results.store import LocalMachine, Store, newest_answers
from . import comparable, speedup, study
from .study import Study


def rows(store: Store, asked: Sweep, machine_ids: Collection[str]) -> list[Trial]:
    """What machines measured of a sweep, machine by machine: the newest run of each point that answers it.

    Raises:
        StoreError: the store cannot be read.
    """
    experiments = [asked.experiment(point) for point in asked.points]
    names = [experiment.id for experiment in experiments]
    found = store.trials(experiment_id=names, machine_id=sorted(machine_ids)) if machine_ids else []
    kept: list[Trial] = []
    for machine_id in sorted(machine_ids):
        theirs = [row for row in found if row.machine_id == machine_id]
        if theirs:
            newest = max(theirs, key=lambda row: row.started_at)
            here = LocalMachine(machine_id=machine_id, torch_version=newest.torch_version)
            answers = newest_answers(theirs, experiments, here, accepted=speedup.answers_experiment)
            kept += [row for name in names for row in answers.get(name, ())]
    return kept


def by_machine(found: Iterable[Study], asked: Sweep) -> dict[str, Study]:
    """By machine, of the studies of a sweep that of its baseline and its last contender, or the one with most sizes."""
    pair, best = {str(asked.contenders[0]), str(asked.contenders[-1])}, dict[str, Study]()
    for entry in sorted(found, key=lambda entry: ({entry.baseline, entry.challenger} == pair, len(entry.runs))):
        best[machine_of(entry)] = entry
    return dict(sorted(best.items()))


def label(numbers: Sequence[int], cpu_name: str, threads: int) -> str:
    """What machines are called that are one in a list: "machine 3 (AMD EPYC, 2 CPU threads)", "machines 1, 2 (…)"."""
    about = ", ".join(filter(None, (cpu_name, units.format_quantity(threads, "CPU thread") if threads else "")))
    return f"machine{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} ({about})"


def machine_of(of: Study) -> str:
    """The machine of a study."""
    return of.runs[0][0].machine_id


def same_question(of: Study, others: Iterable[Study]) -> list[Study]:
    """Of other studies those that ask the same of other machines, the one with the most sizes of each."""
    first, columns = of.runs[0][0], comparable.columns_except_axis(comparable.CHART_COLUMNS, of.axis)
    found: dict[str, Study] = {machine_of(of): of}
    for other in sorted(others, key=study.study_rank, reverse=True):
        row = other.runs[0][0]
        alike = (other.axis, other.baseline, other.challenger) == (of.axis, of.baseline, of.challenger)
        if alike and all(getattr(row, name) == getattr(first, name) for name in columns):
            found.setdefault(machine_of(other), other)
    return [other for machine_id, other in found.items() if machine_id != machine_of(of)]
