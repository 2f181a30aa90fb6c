"""One question on many machines: the rows of each, and the crossover that each has found.

Machines never mix: rows of each make a study of their own, and what is said of all of them is a list. Machines that
are alike are one where they share points, as their rows bear one `machine_id`; where each measures all, its rows bear
one of its own.
"""

from collections.abc import Iterable, Sequence

from core import units
from core.answer import comparable
from core.answer.study import study
from core.answer.study.study import Study
from core.question.sweep import Sweep


def by_machine(found: Iterable[Study], asked: Sweep) -> dict[str, Study]:
    """By machine, of the studies of a sweep that of its baseline and its last contender, or the one with most sizes."""
    pair, best = {str(asked.contenders[0]), str(asked.contenders[-1])}, dict[str, Study]()
    for entry in sorted(found, key=lambda entry: ({entry.baseline, entry.challenger} == pair, len(entry.runs))):
        best[machine_of(entry)] = entry
    return dict(sorted(best.items()))


def label(numbers: Sequence[int], cpu_name: str, threads: int) -> str:
    """What machines are called that are one in a list: "machine 3 (AMD EPYC, 2 CPU threads)", "machines 1, 2 (…)"."""
    about = ", ".join(filter(None, (cpu_name, units.counted(threads, "CPU thread") if threads else "")))
    return f"machine{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} ({about})"


def machine_of(of: Study) -> str:
    """The machine of a study."""
    return of.runs[0][0].machine_id


def same_question(of: Study, others: Iterable[Study]) -> list[Study]:
    """Of other studies those that ask the same of other machines, the one with the most sizes of each."""
    first, columns = of.runs[0][0], comparable.along(comparable.TOGETHER, of.axis)
    found: dict[str, Study] = {machine_of(of): of}
    for other in sorted(others, key=study.rank, reverse=True):
        row = other.runs[0][0]
        alike = (other.axis, other.baseline, other.challenger) == (of.axis, of.baseline, of.challenger)
        if alike and all(getattr(row, name) == getattr(first, name) for name in columns):
            found.setdefault(machine_of(other), other)
    return [other for machine_id, other in found.items() if machine_id != machine_of(of)]
