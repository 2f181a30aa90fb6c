"""How what a job brought reaches the store, whoever is left to take it there: the worker, or who finds it dead.

Rows are written beside the job first and stay there until its end is written down, so that a kill at any moment,
or a store that refuses, loses nothing. Which state a job may enter is decided in `core.jobs.queue`.
"""

import contextlib
import dataclasses
from collections.abc import Sequence

from core.errors import StoreError
from core.jobs.job import Job, State
from core.jobs.job_folder import JobFolder
from core.results import writing
from core.results.exhibits import exhibit_files
from core.results.exhibits.exhibit import Exhibit
from core.results.reading import readable, refusal_of
from core.results.reuse import CUT_OFF
from core.results.schema import Outcome, Trial
from core.results.store import Store
from core.results.tables import to_table

DRIVER_KILLED = (
    "The process that drives the cluster was killed, as Ray does when the cluster is lost. What came back by then is "
    "in the store; run it again to continue."
)
"""What is said of a sweep that a cluster measures, where nobody drives it any more."""


def complete(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool = False) -> Job:
    """Bring the rows of a measurement that came to its end; the job as it is then.

    Where the store refuses them, its message is the reason and it is marked as unsaved. It also says which contenders
    have no row that tells all. `again` is as in `save`.
    """
    saved_job, refusal = save(folder, job, trials, again=again)
    return finished(with_missing(saved_job, trials), refusal)


def finished(job: Job, message: str = "") -> Job:
    """The job at its end, with a message that also says which rows it lacks; failed if it has none at all."""
    said = " ".join(filter(None, [message, *job.missing]))
    return dataclasses.replace(job, state="finished" if job.trial_ids else "failed", message=said)


def with_missing(job: Job, trials: Sequence[Trial]) -> Job:
    """The job that has measured these rows, with a sentence on each contender that has no row of its own among them.

    A row that readers would refuse is none; that of a lane that failed has a sentence of its own.
    """
    experiments = {trial.experiment_id for trial in trials}
    there = {(trial.experiment_id, trial.contender) for trial in trials}
    asked = [str(contender) for contender in job.asked.contenders]
    absent = [name for name in asked if any((experiment, name) not in there for experiment in experiments)]
    said = [f"{name} has no row, as nothing of it could be timed within the budget." for name in absent]
    said += [trial.message for trial in trials if trial.outcome == "interrupted"]
    reasons = {trial.contender: refusal_of(trial) for trial in trials}
    said += [f"The row of {name} was refused: {reason}." for name, reason in reasons.items() if reason]
    return dataclasses.replace(job, missing=tuple(dict.fromkeys((*job.missing, *said))))


def complete_exhibit(folder: JobFolder, job: Job, exhibit: Exhibit) -> Job:
    """Bring what a lesson showed to the store, beside its rows; the job as it is then.

    It stays beside the job as well. Bringing it twice is bringing it once.
    """
    refusal, kept = "", False
    with contextlib.suppress(OSError):
        folder.keep_exhibit(exhibit)
        kept = True
    try:
        exhibit_files.add(job.store, exhibit)
    except StoreError as error:
        fate = "is kept with the job" if kept else "could not be kept with the job either"
        refusal = f"The store did not take what was shown, it {fate}: {error}"
    return dataclasses.replace(
        job,
        state="finished",
        message=refusal,
        unsaved=bool(refusal),
        exhibit_id=exhibit.id if kept or not refusal else "",
    )


def save(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool = False) -> tuple[Job, str]:
    """Bring rows of a job that goes on; the job as it is then, and why the store refused them (empty if it did not).

    One that readers would refuse is left out, so that it costs no other; the others stay beside the job until it is
    written down that they are among its rows.

    Args:
        folder: the job's files.
        job: as it is.
        trials: its new rows.
        again: whether somebody who was killed may have brought some of them.
    """
    rows = readable(trials)
    refusal = _store(folder, job, rows, again=again)
    return dataclasses.replace(with_rows(job, rows), unsaved=bool(refusal)), refusal


def rescue(folder: JobFolder, job: Job, *, state: State, event: str) -> Job:
    """Bring what a measurement that was cut off had saved; the job as it is then.

    Args:
        folder: the job's files, which nobody else writes any more.
        job: as it was written down last.
        state: what it is if its rows are not complete.
        event: what cut it off, the beginning of a sentence: "The measuring process was killed".
    """
    if job.elsewhere:
        saved_job, refusal = save(folder, job, folder.unsaved(), again=True)
        return dataclasses.replace(saved_job, state=state, message=" ".join(filter(None, [DRIVER_KILLED, refusal])))
    if job.demonstration:
        shown = folder.exhibit()
        return (
            complete_exhibit(folder, job, shown)
            if shown
            else dataclasses.replace(job, state=state, message=f"{event} before it was done.")
        )
    outcome: Outcome = "stopped" if state == "stopped" else "interrupted"
    stored = [trial for trial in own_rows(job) if trial.outcome not in CUT_OFF]
    cut_off = [_cut_off(trial, outcome, event) for trial in folder.partial()]
    whole = folder.unsaved()
    if job.sweep:
        return _rescue_sweep(folder, job, [*whole, *stored], cut_off, state=state, event=event)
    if not whole and len(stored) == len(job.asked.contenders):
        whole = stored
    if whole and all(trial.outcome not in CUT_OFF for trial in whole):
        return complete(folder, job, whole, again=True)
    return _rescue_part(folder, job, [*whole, *stored, *cut_off], state=state, event=event)


def own_rows(job: Job) -> list[Trial]:
    """What the store has of a job's own runs, whether the job knows of it or not; none where it cannot be read."""
    experiments = [job.experiment] if job.experiment else []
    if job.sweep:
        experiments = [job.sweep.experiment(point) for point in job.sweep.points]
    with contextlib.suppress(StoreError):
        return Store(job.store).trials(run_id=[job.run_of(experiment) for experiment in experiments])
    return []


def try_again(folder: JobFolder, job: Job) -> Job:
    """Bring what the store refused of an ended job to it once more; the job as it is then, the same if it refuses.

    Raises:
        OSError: what lies in memory cannot be brought to the disk yet.
    """
    if job.unsaved:
        shown = folder.exhibit() if job.demonstration else None
        kept = folder.unsaved()
        if shown:
            job = complete_exhibit(folder, job, shown)
        elif kept:
            tried, refusal = save(folder, job, kept, again=True)
            job = job if refusal else dataclasses.replace(tried, message="")
    folder.move_to_disk()
    return job


def saved(job: Job, in_part: int) -> str:
    """How much of a sweep is saved, as a clause.

    Args:
        job: with the runs of whole points.
        in_part: points of which only some pairs of blocks were measured.
    """
    runs = len(job.run_ids)
    whole = f" of {len(job.sweep.points)}" if job.sweep and not job.sweep.adaptive else ""
    clause = f"{runs}{whole} point{'' if (whole or runs) == 1 else 's'} {'is' if runs == 1 else 'are'} saved"
    return f"{clause}, and {in_part} in part" if in_part else clause


def with_rows(job: Job, trials: Sequence[Trial]) -> Job:
    """The job with rows added to those it has; a row that it has already stays where it is."""
    run_ids = dict.fromkeys((*job.run_ids, *(trial.run_id for trial in trials)))
    trial_ids = dict.fromkeys((*job.trial_ids, *(trial.trial_id for trial in trials)))
    return dataclasses.replace(job, run_ids=tuple(run_ids), trial_ids=tuple(trial_ids))


def _rescue_part(folder: JobFolder, job: Job, rows: Sequence[Trial], *, state: State, event: str) -> Job:
    """Bring what was saved of an experiment of which only a part was measured."""
    rows = list({trial.trial_id: trial for trial in reversed(rows)}.values())[::-1]
    blocks = max((len(trial.block_pair) for trial in rows), default=0)
    if not blocks:
        return dataclasses.replace(job, state=state, message=f"{event} before anything was measured.")
    unit = "pair" if len(rows) > 1 else "block"
    measured = f"{event} after {blocks} {unit}{'s' if blocks > 1 else ''}"
    saved_job, refusal = save(folder, job, rows, again=True)
    message = f"{measured}. {refusal}" if refusal else f"{measured}; what was measured by then is saved."
    return dataclasses.replace(saved_job, state=state, message=message)


def _rescue_sweep(
    folder: JobFolder, job: Job, whole: Sequence[Trial], cut_off: Sequence[Trial], *, state: State, event: str
) -> Job:
    """Bring what a sweep had saved: whole points that it does not know of yet, and points that were cut off."""
    settled = with_rows(job, whole)
    rest = [trial for trial in cut_off if trial.block_pair and trial.trial_id not in settled.trial_ids]
    in_part = len({trial.run_id for trial in rest}.difference(settled.run_ids))
    message = f"{event}: {saved(settled, in_part)}; run it again to continue."
    if not whole and not rest:
        return dataclasses.replace(job, state=state, message=message)
    saved_job, refusal = save(folder, job, [*whole, *rest], again=True)
    return dataclasses.replace(saved_job, state=state, message=f"{event}. {refusal}" if refusal else message)


def _store(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool) -> str:
    """Why the store refused the rows; empty if it has them."""
    kept = False
    with contextlib.suppress(OSError):  # no room beside the job does not mean that the store has none
        folder.keep_unsaved(trials)
        kept = True
    try:
        store = Store(job.store)
        there = set(store.trials(run_id={trial.run_id for trial in trials})) if again else set()
        new = [trial for trial in trials if trial not in there]
        if new:  # of one run in one file: between two, a kill or a compaction could come
            for together in writing.split(to_table(new)):
                store.add_all(together)
    except StoreError as error:
        fate = "are kept with the job" if kept else "could not be kept with the job either"
        return f"The store did not take the rows, they {fate}: {error}"
    return ""


def _cut_off(trial: Trial, outcome: Outcome, event: str) -> Trial:
    """The row with the outcome of being cut off, unless it had come to its own end before."""
    if trial.outcome != "interrupted" or trial.message:
        return trial
    return dataclasses.replace(trial, outcome=outcome, message=f"{event}.")
