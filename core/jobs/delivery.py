"""How the rows of a job reach the store, whoever is left to bring them: the worker, or those who find it dead.

Rows are written beside the job first and stay there until its end is written down, so that a kill at any moment,
or a store that refuses, loses nothing. Which state a job may enter is decided in `core.jobs.queue`.
"""

import contextlib
import dataclasses
from collections.abc import Sequence

from core.errors import StoreError
from core.jobs.job import Job, JobFolder, State
from core.results.schema import Outcome, Trial
from core.results.store import Store


def complete(folder: JobFolder, job: Job, trials: Sequence[Trial]) -> Job:
    """Bring the rows of a measurement that came to its end; the job as it is then.

    Where the store refuses them, its message is the reason and it is marked as unsaved.
    """
    refusal = _store(folder, job, trials)
    return dataclasses.replace(_with_rows(job, trials), state="finished", message=refusal, unsaved=bool(refusal))


def rescue(folder: JobFolder, job: Job, *, state: State, event: str) -> Job:
    """Bring what a measurement that was cut off had saved; the job as it is then.

    Args:
        folder: the job's files, which nobody else writes any more.
        job: as it was written down last.
        state: what it is if its rows are not complete.
        event: what cut it off, the beginning of a sentence: "The measuring process was killed".
    """
    if unsaved := folder.unsaved():
        return complete(folder, job, unsaved)
    outcome: Outcome = "stopped" if state == "stopped" else "interrupted"
    trials = [_cut_off(trial, outcome, event) for trial in folder.partial()]
    blocks = max((len(trial.block_pair) for trial in trials), default=0)
    if not blocks:
        return dataclasses.replace(job, state=state, message=f"{event} before anything was measured.")
    unit = "pair" if len(trials) > 1 else "block"
    measured = f"{event} after {blocks} {unit}{'s' if blocks > 1 else ''}"
    refusal = _store(folder, job, trials)
    message = (
        f"{measured}. {refusal}" if refusal else f"{measured}; what was measured is saved, run it again to continue."
    )
    return dataclasses.replace(_with_rows(job, trials), state=state, message=message, unsaved=bool(refusal))


def _store(folder: JobFolder, job: Job, trials: Sequence[Trial]) -> str:
    """Why the store refused the rows; empty if it has them."""
    kept = False
    with contextlib.suppress(OSError):  # no room beside the job does not mean that the store has none
        folder.keep_unsaved(trials)
        kept = True
    try:
        store = Store(job.store)
        for trial in trials:
            store.add(trial)
    except StoreError as error:
        fate = "are kept with the job" if kept else "could not be kept with the job either"
        return f"The store did not take the rows, they {fate}: {error}"
    return ""


def _cut_off(trial: Trial, outcome: Outcome, event: str) -> Trial:
    """The row with the outcome of being cut off, unless it had come to its own end before."""
    if trial.outcome != "interrupted":
        return trial
    return dataclasses.replace(trial, outcome=outcome, message=f"{event}.")


def _with_rows(job: Job, trials: Sequence[Trial]) -> Job:
    run_id = trials[0].run_id if trials else ""
    return dataclasses.replace(job, run_id=run_id, trial_ids=tuple(trial.trial_id for trial in trials))
