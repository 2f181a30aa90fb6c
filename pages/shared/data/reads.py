"""What pages read: the machine, jobs and stored rows, kept where reading again would cost time.

What is worked out of rows is in `pages.shared.data.prepared`. Nothing here measures. Whatever reads the store raises
StoreError where it cannot be read, or the rows take more than `shelf.MOST_BYTES`; so does what is prepared of it.
"""

import contextlib
import functools
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from core import units
from core.answer.gallery import table
from core.answer.gallery.table import Overview, StudyLine
from core.answer.run import certainty
from core.answer.study.study import Study
from core.errors import StoreError
from core.jobs import client
from core.jobs.cluster_machine import ClusterMachine
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.question import policy
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep
from core.results.exhibits import exhibit_files
from core.results.exhibits.exhibit import Exhibit
from core.results.finding import mirrored
from core.results.finding.index import Skipped
from core.results.intake import exchange
from core.results.intake.exchange import Proposal
from core.results.reuse import Accepted, any_run, newest_answers
from core.results.schema import Trial
from core.results.store import GALLERY, RESULTS, Store
from pages.shared.data import folders, shelf
from pages.shared.data.kept import kept

MOST_IMPORTED = 5_000
"""Rows of a file that a page takes; the command line takes more."""

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results, or the address of a store that machines share."""


def queue() -> Queue:
    return _queue(os.environ.get(JOBS_VARIABLE, ""))


def results() -> Store:
    return Store(mirrored.located(os.environ.get(RESULTS_VARIABLE) or str(RESULTS)))


def machine() -> Machine | None:
    """This machine as its measuring process sees it, which is started if none runs; None until it has reported.

    Where nothing can be run none is started, and what the last one said is all that is known.
    """
    if not only_looking():
        client.ensure_worker(queue(), ours=True)
    return client.machine(queue())


def machines() -> tuple[ClusterMachine, ...]:
    """The machines of a cluster, as those of the last sweep on one told; none before the first."""
    return next((job.machines for job in reversed(queue().jobs()) if job.machines), ())


def only_looking() -> str:
    """Why nothing can be run on this host whoever asks, in one sentence; empty if something can."""
    if policy.current().who_may_run == "nobody":
        return "Nothing is run on this host; what is stored can be looked at."
    if not client.has_torch():
        return "PyTorch is not installed here, so nothing can be run; what is stored can be looked at."
    return ""


def loading() -> str:
    """What the measuring process is doing before it can measure, in a sentence; empty once it is ready."""
    serving = queue().worker_file.serving
    if serving is None or serving.ready:
        return ""
    last = client.machine(queue())
    took = f", which took {units.duration(last.loading_s)} last time" if last and last.loading_s else ""
    return f"PyTorch is being loaded{took}."


def overview() -> Overview:
    """One light line for every trial of this machine's store and of the gallery that ships with the app."""
    return _overview(_stores())


def refused() -> tuple[Skipped, ...]:
    """Files whose rows are listed, and turned out not to be readable when they were asked for."""
    return tuple(entry for store in _stores() for entry in store.refused())


def rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """The whole rows of some trials or runs, in the order of runs and their contenders; no trial twice."""
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    return list(shelf.rows(_stores(), named)) if named else []


def known(
    experiments: Sequence[Experiment], machine: Machine, *, accepted: Accepted = certainty.answers
) -> dict[str, list[Trial]]:
    """Experiment id → its newest answer that was measured on this machine, by `core.results.reuse`."""
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.here.machine_id,)))
    return newest_answers(shelf.rows(_stores(), wanted), experiments, machine.here, accepted=accepted)


def shown(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """The newest answers as `known` has them; without one, what was measured all the same, as on a busy machine."""
    return known(experiments, machine, accepted=any_run) | known(experiments, machine)


def study_lines() -> list[StudyLine]:
    """Every study that is stored here or came with the app, those with the most sizes first."""
    return _study_lines(_stores())


def study_line(study_id: str) -> StudyLine | None:
    """One study with all its sizes, also if it is too old for lists; None if there is none of that name."""
    listed = next((line for line in study_lines() if line.id == study_id), None)
    known = overview()
    return (known.left_out and _older(_stores(), known, study_id)) or listed


def study(study_id: str) -> Study | None:
    """One study with its whole rows; None as in `study_line`."""
    line = study_line(study_id)
    return shelf.studies(_stores(), [line]).get(study_id) if line else None


def whole(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Some studies with their whole rows, by name, read in one go; one that cannot be read is missing."""
    with contextlib.suppress(StoreError):  # one of them may be too large; it must not hide the others
        return shelf.studies(_stores(), lines)
    found: dict[str, Study] = {}
    for line in lines:
        with contextlib.suppress(StoreError):
            found |= shelf.studies(_stores(), [line])
    return found


@kept(256)
def sweep(
    fields: Mapping[str, Any],
    axes: tuple[Axis, ...],
    contenders: tuple[str, ...],
    adaptive: bool,
    limits: Mapping[str, float],
    folder: str = "",
) -> Sweep:
    """The sweep that settings ask for, checked once, which takes long; raises InvalidValue if a point is impossible."""
    first = {axes[0].name: axes[0].values[0]} if axes[0].name != "parameters" else {}
    return Sweep(
        point=Point(**{**fields, **first}),
        axes=axes,
        contenders=tuple(Contender.parse(text) for text in contenders) or (Contender(),),
        adaptive=adaptive,
        pairs=int(limits["pairs"]),
        budget_s=limits["budget_s"],
        point_budget_s=limits["point_budget_s"],
        folder=folder,
    )


@kept(256)
def sweep_parameters(asked: Sweep) -> tuple[int, ...]:
    """Parameters of each point of a sweep, or of each size to choose from."""
    return tuple(point.network.parameters for point in asked.points)


def answers(asked: Sweep, known: Machine) -> tuple[tuple[Trial, ...], bool]:
    """What this machine measured of a sweep itself, with its devices and torch of now; whether every point has rows."""
    return _answers(asked, results(), known)


@kept(64)
def job_rows(job: Job) -> list[Trial]:
    return client.rows(queue(), job)


def exhibits() -> list[Exhibit]:
    """Every exhibit of this machine's store and of the gallery that ships with the app, the gallery's first."""
    return _exhibits(*_exhibit_folders())[0]


def unread_exhibits() -> tuple[Skipped, ...]:
    """The files among them that are none, or cannot be read."""
    return _exhibits(*_exhibit_folders())[1]


def proposal(data: bytes, name: str) -> Proposal:
    """What would become of a foreign file in this machine's store; checked once, whoever uploads it."""
    return _proposal(data, name, results())


@functools.cache
def _queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _stores() -> tuple[Store, Store]:
    """Where there are rows: those measured here, and the gallery's."""
    return results(), Store(GALLERY)


@kept(2)
def _overview(stores: tuple[Store, Store]) -> Overview:
    return table.whole([(stores[0], "measured here"), (stores[1], "gallery")])


@kept(2)
def _study_lines(stores: tuple[Store, Store]) -> list[StudyLine]:
    return table.studies(_overview(stores).frame)


@kept(64, spinner="Looking for the study …")
def _older(stores: tuple[Store, Store], known: Overview, study_id: str) -> StudyLine | None:
    from core.answer.gallery import older  # which stores need that are too large for one list

    return older.line(stores, known.frame, study_id)


def _exhibit_folders() -> tuple[tuple[Path, ...], tuple[int, ...]]:
    stores = (GALLERY, results().folder)
    return stores, tuple(folders.signature(store / exhibit_files.FOLDER) for store in stores)


@kept(4)
def _exhibits(stores: tuple[Path, ...], signatures: tuple[int, ...]) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
    """What can be read of each, and what cannot; a folder that cannot be read hides no other."""
    found: list[Exhibit] = []
    skipped: list[Skipped] = []
    for store in stores:
        try:
            shown, left_out = exhibit_files.read(store)
            found, skipped = found + shown, [*skipped, *left_out]
        except StoreError as error:
            skipped.append(Skipped(name=exhibit_files.FOLDER, reason=str(error)))
    return found, tuple(skipped)


@kept(64)
def _answers(asked: Sweep, store: Store, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    experiments = [asked.experiment(point) for point in asked.points]
    newest, answered = shown(experiments, machine), known(experiments, machine)
    rows = tuple(row for experiment in experiments for row in newest.get(experiment.id, ()))
    return rows, all(experiment.id in answered for experiment in experiments)


@kept(2, seconds=600, spinner="Checking the file …")
def _proposal(data: bytes, name: str, store: Store) -> Proposal:
    return exchange.check(data, name, store, most_rows=MOST_IMPORTED)
