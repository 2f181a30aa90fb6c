"""Recovery of a job's rows: the worker writes them to the store, or the process that finds the worker dead does.

Rows are written to the job's folder first and stay there until its end is stored. A kill at any moment, or a store that
refuses rows, therefore loses nothing. `core.jobs.queue` decides which state a job may enter.
"""

import contextlib
import dataclasses
from collections.abc import Sequence

from ..errors import StoreError
from ..results import exhibits, parquet
from ..results.exhibits import Exhibit
from ..results.parquet import find_refusal, readable, to_table
from ..results.schema import Outcome, Trial
from ..results.store import CUT_OFF, Store
from .job import Job, JobFolder, State

DRIVER_KILLED = (
    "The process that drives the cluster was killed, as Ray does when the cluster is lost. The results received by "
    "then are in the store; run it again to continue."
)
"""Message for a sweep of a cluster whose driver has ended."""

LOST = "The results are lost: both disks were full, and the process that had them in memory has ended."
"""Message for a job whose rows or exhibit neither the store's disk nor the jobs' disk accepted."""

_IN_MEMORY = "only in memory until this process ends"


def complete(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool = False) -> Job:
    """Store the rows of a finished measurement; return the updated job.

    If the store refuses them, the job is marked as unsaved, and its message is the reason. The message also names
    contenders without a complete row. `again` is as in `save`.
    """
    saved_job, refusal = save(folder, job, trials, again=again)
    return finish_job(with_missing(saved_job, trials), refusal)


def finish_job(job: Job, message: str = "") -> Job:
    """Return the ended job, with a message that also names missing rows; failed if it has no rows."""
    said = " ".join(filter(None, [message, *job.missing]))
    return dataclasses.replace(job, state="finished" if job.trial_ids else "failed", message=said)


def with_missing(job: Job, trials: Sequence[Trial]) -> Job:
    """Return the job with a sentence on each contender without a row.

    A row that readers would refuse does not count; a failed variant has a separate sentence.
    """
    experiments = {trial.experiment_id for trial in trials}
    there = {(trial.experiment_id, trial.contender) for trial in trials}
    asked = [str(contender) for contender in job.question.contenders]
    absent = [name for name in asked if any((experiment, name) not in there for experiment in experiments)]
    said = [f"{name} has no row, because no block could be timed within the budget." for name in absent]
    said += [trial.message for trial in trials if trial.outcome == "interrupted"]
    reasons = {trial.contender: find_refusal(trial) for trial in trials}
    said += [f"The row of {name} was refused: {reason}." for name, reason in reasons.items() if reason]
    return dataclasses.replace(job, missing=tuple(dict.fromkeys((*job.missing, *said))))


def complete_exhibit(folder: JobFolder, job: Job, exhibit: Exhibit) -> Job:
    """Write a lesson's exhibit to the store, next to its rows; return the updated job.

    The job's folder has a copy. Writing the exhibit twice has the same effect as once.
    """
    refusal, kept = "", folder.keep_exhibit(exhibit)
    try:
        exhibits.add_exhibit(job.store, exhibit)
    except StoreError as error:
        refusal = f"The exhibit could not be stored, it is {'saved with the job' if kept else _IN_MEMORY}: {error}"
    return dataclasses.replace(job, state="finished", message=refusal, unsaved=bool(refusal), exhibit_id=exhibit.id)


def save(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool = False) -> tuple[Job, str]:
    """Write rows of a running job; return the updated job, and why the store refused the rows (empty if it did not).

    A row that readers would refuse is omitted, so that the others are saved. The others stay in the job's folder until
    the job lists them.

    Args:
        folder: the job's files.
        job: present job.
        trials: new rows.
        again: whether a killed process may have written some of them.
    """
    rows = readable(trials)
    refusal = _store(folder, job, rows, again=again)
    return dataclasses.replace(with_rows(job, rows), unsaved=bool(refusal)), refusal


def rescue(folder: JobFolder, job: Job, *, state: State, event: str) -> Job:
    """Store the saved rows of an interrupted measurement; return the updated job.

    Args:
        folder: the job's files, which no other process writes.
        job: job as last stored.
        state: state of the job if rows are missing.
        event: reason of the interruption, as the beginning of a sentence: "The measuring process was killed".
    """
    if job.elsewhere:
        saved_job, refusal = save(folder, job, folder.read_unsaved(), again=True)
        return dataclasses.replace(saved_job, state=state, message=" ".join(filter(None, [DRIVER_KILLED, refusal])))
    if job.demonstration:
        shown = folder.read_exhibit()
        return (
            complete_exhibit(folder, job, shown)
            if shown
            else dataclasses.replace(job, state=state, message=f"{event} before it was done.")
        )
    outcome: Outcome = "stopped" if state == "stopped" else "interrupted"
    stored = [trial for trial in load_rows_of_job(job) if trial.outcome not in CUT_OFF]
    cut_off = [_cut_off(trial, outcome, event) for trial in folder.read_partial()]
    whole = folder.read_unsaved()
    if job.sweep:
        return _rescue_sweep(folder, job, [*whole, *stored], cut_off, state=state, event=event)
    if not whole and len(stored) == len(job.question.contenders):
        whole = stored
    if whole and all(trial.outcome not in CUT_OFF for trial in whole):
        return complete(folder, job, whole, again=True)
    return _rescue_part(folder, job, [*whole, *stored, *cut_off], state=state, event=event)


def load_rows_of_job(job: Job) -> list[Trial]:
    """Return the stored rows of a job's runs, listed in the job or not; empty if the store cannot be read."""
    experiments = [job.experiment] if job.experiment else []
    if job.sweep:
        experiments = [job.sweep.experiment(point) for point in job.sweep.points]
    with contextlib.suppress(StoreError):
        return Store(job.store).trials(run_id=[job.derive_run_id(experiment) for experiment in experiments])
    return []


def try_again(folder: JobFolder, job: Job) -> Job:
    """Try again to store refused data of an ended job; return the job, unchanged if the store refuses again."""
    if not job.unsaved:
        return job
    if job.demonstration and (shown := folder.read_exhibit()):
        return complete_exhibit(folder, job, shown)
    if not (kept := folder.read_unsaved()):
        return dataclasses.replace(job, unsaved=False, message=LOST)
    tried, refusal = save(folder, job, kept, again=True)
    return job if refusal else dataclasses.replace(tried, message="")


def describe_saved(job: Job, in_part: int) -> str:
    """Return a clause on how much of a sweep is saved.

    Args:
        job: job with the runs of complete points.
        in_part: number of points of which only some pairs of blocks were measured.
    """
    runs = len(job.run_ids)
    whole = f" of {len(job.sweep.points)}" if job.sweep and not job.sweep.adaptive else ""
    clause = f"{runs}{whole} point{'' if (whole or runs) == 1 else 's'} {'is' if runs == 1 else 'are'} saved"
    return f"{clause}, and {in_part} in part" if in_part else clause


def with_rows(job: Job, trials: Sequence[Trial]) -> Job:
    """Return the job with added rows; a row that the job already has stays in its place."""
    run_ids = dict.fromkeys((*job.run_ids, *(trial.run_id for trial in trials)))
    trial_ids = dict.fromkeys((*job.trial_ids, *(trial.trial_id for trial in trials)))
    return dataclasses.replace(job, run_ids=tuple(run_ids), trial_ids=tuple(trial_ids))


def _rescue_part(folder: JobFolder, job: Job, rows: Sequence[Trial], *, state: State, event: str) -> Job:
    """Store the saved rows of an experiment that was measured only in part."""
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
    folder: JobFolder, job: Job, complete_rows: Sequence[Trial], cut_off: Sequence[Trial], *, state: State, event: str
) -> Job:
    """Store the saved rows of a sweep: complete points that the job does not list yet, and unfinished points."""
    settled = with_rows(job, complete_rows)
    rest = [trial for trial in cut_off if trial.block_pair and trial.trial_id not in settled.trial_ids]
    in_part = len({trial.run_id for trial in rest}.difference(settled.run_ids))
    message = f"{event}: {describe_saved(settled, in_part)}; run it again to continue."
    if not complete_rows and not rest:
        return dataclasses.replace(job, state=state, message=message)
    saved_job, refusal = save(folder, job, [*complete_rows, *rest], again=True)
    return dataclasses.replace(saved_job, state=state, message=f"{event}. {refusal}" if refusal else message)


def _store(folder: JobFolder, job: Job, trials: Sequence[Trial], *, again: bool) -> str:
    """Return why the store refused the rows; empty if it has them."""
    kept = folder.keep_unsaved(trials)
    try:
        store = Store(job.store)
        there = set(store.trials(run_id={trial.run_id for trial in trials})) if again else set()
        new = [trial for trial in trials if trial not in there]
        if new:  # of one run in one file: between two, a kill or a compaction could come
            for together in parquet.split(to_table(new)):
                store.add_all(together)
    except StoreError as error:
        return f"The rows could not be stored, they are {'saved with the job' if kept else _IN_MEMORY}: {error}"
    return ""


def _cut_off(trial: Trial, outcome: Outcome, event: str) -> Trial:
    """Return the row with the outcome of an interruption, unless it had ended before."""
    if trial.outcome != "interrupted" or trial.message:
        return trial
    return dataclasses.replace(trial, outcome=outcome, message=f"{event}.")
