"""What pages read: the machine, jobs and stored rows, kept where reading again would cost time.

What is worked out of rows is in `pages.shared.data.prepared`. Nothing here measures. Whatever reads the store raises
StoreError where it cannot be read, or the rows take more than `cache.MAX_READ_BYTES`; so does what is prepared of it.
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
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.jobs.shared.members import Member
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
from pages.shared import cache
from pages.shared.cache import cache_answers

MAX_IMPORTED_ROWS = 5_000
"""Rows of a file that a page takes; the command line takes more."""

RESULTS_VARIABLE = "CROSSOVER_RESULTS"
"""Environment variable that names another folder of results, or the address of a store that machines share."""


def open_queue() -> Queue:
    return _open_queue(os.environ.get(JOBS_VARIABLE, ""))


def open_store() -> Store:
    return Store(mirrored.located(os.environ.get(RESULTS_VARIABLE) or str(RESULTS)))


def read_machine() -> Machine | None:
    """This machine as its measuring process sees it, which is started if none runs; None until it has reported.

    Where nothing can be run none is started, and what the last one said is all that is known.
    """
    if not explain_no_runs():
        client.ensure_worker(open_queue(), ours=True)
    return client.machine(open_queue())


def is_store_shared() -> bool:
    """Whether other machines may see the store: it has an address, or lies in a folder that the host has named."""
    return bool(os.environ.get(RESULTS_VARIABLE))


def list_machines() -> tuple[list[Member], str]:
    """The machines at work for who shares the store, as they said a moment ago; and why they cannot be told, if so."""
    return _list_members(open_store().folder)


def explain_no_runs() -> str:
    """Why nothing can be run on this host whoever asks, in one sentence; empty if something can."""
    if policy.current().who_may_run == "nobody":
        return "Nothing is run on this host; what is stored can be looked at."
    if not client.has_torch():
        return "PyTorch is not installed here, so nothing can be run; what is stored can be looked at."
    return ""


def describe_loading() -> str:
    """What the measuring process is doing before it can measure, in a sentence; empty once it is ready."""
    serving = open_queue().worker_file.serving
    if serving is None or serving.ready:
        return ""
    last = client.machine(open_queue())
    took = f", which took {units.duration(last.loading_s)} last time" if last and last.loading_s else ""
    return f"PyTorch is being loaded{took}."


def read_overview() -> Overview:
    """One light line for every trial of this machine's store and of the gallery that ships with the app."""
    return _load_overview(_open_stores())


def list_refused_files() -> tuple[Skipped, ...]:
    """Files whose rows are listed, and turned out not to be readable when they were asked for."""
    return tuple(entry for store in _open_stores() for entry in store.refused())


def find_rows(*, trial_ids: Collection[str] = (), run_ids: Collection[str] = ()) -> list[Trial]:
    """The whole rows of some trials or runs, in the order of runs and their contenders; no trial twice."""
    wanted = {"trial_id": trial_ids, "run_id": run_ids}
    named = tuple((column, tuple(sorted(names))) for column, names in wanted.items() if names)
    return list(cache.read_rows(_open_stores(), named)) if named else []


def find_known_answers(
    experiments: Sequence[Experiment], machine: Machine, *, accepted: Accepted = certainty.answers
) -> dict[str, list[Trial]]:
    """Experiment id → its newest answer that was measured on this machine, by `core.results.reuse`."""
    names = tuple(sorted({experiment.id for experiment in experiments}))
    wanted = (("experiment_id", names), ("machine_id", (machine.here.machine_id,)))
    return newest_answers(cache.read_rows(_open_stores(), wanted), experiments, machine.here, accepted=accepted)


def find_newest_answers(experiments: Sequence[Experiment], machine: Machine) -> dict[str, list[Trial]]:
    """The newest answers as `find_known_answers` has them; without one, what was measured all the same, as on a busy machine."""
    return find_known_answers(experiments, machine, accepted=any_run) | find_known_answers(experiments, machine)


def list_study_lines() -> list[StudyLine]:
    """Every study that is stored here or came with the app, those with the most sizes first."""
    return _group_study_lines(_open_stores())


def find_study_line(study_id: str) -> StudyLine | None:
    """One study with all its sizes, also if it is too old for lists; None if there is none of that name."""
    listed = next((line for line in list_study_lines() if line.id == study_id), None)
    known = read_overview()
    return (known.left_out and _find_older_line(_open_stores(), known, study_id)) or listed


def find_study(study_id: str) -> Study | None:
    """One study with its whole rows; None as in `find_study_line`."""
    line = find_study_line(study_id)
    return cache.read_studies(_open_stores(), [line]).get(study_id) if line else None


def find_studies(lines: Sequence[StudyLine]) -> dict[str, Study]:
    """Some studies with their whole rows, by name, read in one go; one that cannot be read is missing."""
    with contextlib.suppress(StoreError):  # one of them may be too large; it must not hide the others
        return cache.read_studies(_open_stores(), lines)
    found: dict[str, Study] = {}
    for line in lines:
        with contextlib.suppress(StoreError):
            found |= cache.read_studies(_open_stores(), [line])
    return found


@cache_answers(256)
def make_sweep(
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


@cache_answers(256)
def count_parameters(request: Sweep) -> tuple[int, ...]:
    """Parameters of each point of a sweep, or of each size to choose from."""
    return tuple(point.network.parameters for point in request.points)


def find_sweep_answers(request: Sweep, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    """What this machine measured of a sweep itself, with its devices and torch of now; whether every point has rows."""
    return _find_sweep_answers(request, open_store(), machine)


@cache_answers(64)
def find_job_rows(job: Job) -> list[Trial]:
    return client.rows(open_queue(), job)


def list_exhibits() -> list[Exhibit]:
    """Every exhibit of this machine's store and of the gallery that ships with the app, the gallery's first."""
    return _load_exhibits(*_sign_exhibit_folders())[0]


def list_unread_exhibits() -> tuple[Skipped, ...]:
    """The files among them that are none, or cannot be read."""
    return _load_exhibits(*_sign_exhibit_folders())[1]


def propose_import(data: bytes, name: str) -> Proposal:
    """What would become of a foreign file in this machine's store; checked once, whoever uploads it."""
    return _propose_import(data, name, open_store())


@cache_answers(4, ttl_s=5)
def _list_members(folder: Path) -> tuple[list[Member], str]:
    from core.jobs.shared import board  # with what reaches servers, which most stores do not need

    try:
        return board.board_of(folder).members(), ""
    except StoreError as error:
        return [], str(error)


@functools.cache
def _open_queue(folder: str) -> Queue:
    return Queue(Path(folder) if folder else None)


def _open_stores() -> tuple[Store, Store]:
    """Where there are rows: those measured here, and the gallery's."""
    return open_store(), Store(GALLERY)


@cache_answers(2)
def _load_overview(stores: tuple[Store, Store]) -> Overview:
    return table.whole([(stores[0], "measured here"), (stores[1], "gallery")])


@cache_answers(2)
def _group_study_lines(stores: tuple[Store, Store]) -> list[StudyLine]:
    return table.studies(_load_overview(stores).frame)


@cache_answers(64, spinner="Looking for the study …")
def _find_older_line(stores: tuple[Store, Store], overview: Overview, study_id: str) -> StudyLine | None:
    from core.answer.gallery import older  # which stores need that are too large for one list

    return older.line(stores, overview.frame, study_id)


def _sign_exhibit_folders() -> tuple[tuple[Path, ...], tuple[int, ...]]:
    stores = (GALLERY, open_store().folder)
    return stores, tuple(cache.sign_folder(store / exhibit_files.FOLDER) for store in stores)


@cache_answers(4)
def _load_exhibits(stores: tuple[Path, ...], signatures: tuple[int, ...]) -> tuple[list[Exhibit], tuple[Skipped, ...]]:
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


@cache_answers(64)
def _find_sweep_answers(request: Sweep, store: Store, machine: Machine) -> tuple[tuple[Trial, ...], bool]:
    experiments = [request.experiment(point) for point in request.points]
    newest, answered = find_newest_answers(experiments, machine), find_known_answers(experiments, machine)
    rows = tuple(row for experiment in experiments for row in newest.get(experiment.id, ()))
    return rows, all(experiment.id in answered for experiment in experiments)


@cache_answers(2, ttl_s=600, spinner="Checking the file …")
def _propose_import(data: bytes, name: str, store: Store) -> Proposal:
    return exchange.check(data, name, store, most_rows=MAX_IMPORTED_ROWS)
