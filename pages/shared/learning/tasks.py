"""What a tutorial or a lesson asks of the measuring process: several questions at once, and what is known of each.

Answers come from the store, so the settings in the link are enough to find them again: no job has to be named. A
question that waits or runs is found in the queue, whoever asked it; two who ask the same join one job.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import StoreError
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.progress import Progress
from core.question.demonstration import Demonstration
from core.question.experiment import Experiment, Point
from core.question.fields import TRAINING
from core.question.policy import Asked
from core.question.sweep import Sweep
from core.results.exhibits import exhibit_files
from core.results.exhibits.exhibit import Exhibit
from core.results.schema import Trial
from pages.shared.data import reads
from pages.shared.draw.text import plain, show_errors
from pages.shared.frame import permits
from pages.shared.job import live

Task = tuple[Asked, ...]
"""Several questions, in the order in which they are measured."""


@dataclass(frozen=True, kw_only=True)
class TaskAnswers:
    """What this machine measured of a task, by the id of each question; `missing` are those not answered in full."""

    rows: dict[str, tuple[Trial, ...]]
    exhibits: dict[str, Exhibit]
    missing: tuple[Asked, ...]

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(row for rows in self.rows.values() for row in rows)


@dataclass(frozen=True, kw_only=True)
class TaskResults:
    """What there is to show: measured here, and recorded on another machine with an accelerator."""

    rows: tuple[Trial, ...] = ()
    shown: tuple[Exhibit, ...] = ()
    recorded_rows: tuple[Trial, ...] = ()
    recorded: tuple[Exhibit, ...] = ()

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (*self.rows, *self.recorded_rows)

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        return (*self.shown, *self.recorded)

    @property
    def key(self) -> str:
        """A name of these rows and exhibits: equal ones have the same."""
        parts = [f"{row.trial_id} {row.outcome} {len(row.block_steps)}" for row in self.trials]
        return hashlib.sha256("\n".join([*parts, *(entry.id for entry in self.exhibits)]).encode()).hexdigest()[:16]


def collect_results(
    answers: TaskAnswers | None, points: Sequence[Point], machine: Machine | None, replays: Iterable[tuple[str, str]]
) -> TaskResults:
    """What is known of a task; without an accelerator here, what one elsewhere did, too.

    Its trainings are `points`; of exhibits those of a kind and a recipe (see `find_recorded_exhibit`) may be replayed.
    """
    here = TaskResults(rows=answers.trials, shown=tuple(answers.exhibits.values())) if answers else TaskResults()
    if machine and len(machine.devices) > 1:
        return here
    recorded = (find_recorded_exhibit(kind, machine, recipe) for kind, recipe in replays)
    return dataclasses.replace(
        here, recorded_rows=find_recorded_trials(points, machine), recorded=tuple(filter(None, recorded))
    )


def find_answers(task: Task, machine: Machine) -> TaskAnswers:
    experiments = [asked for asked in task if isinstance(asked, Experiment)]
    rows = {name: tuple(found) for name, found in reads.find_newest_answers(experiments, machine).items()}
    found: dict[str, Exhibit] = {}
    complete = set(reads.find_known_answers(experiments, machine))
    for asked in task:
        if isinstance(asked, Sweep):
            answer, whole = reads.find_sweep_answers(asked, machine)
            rows |= {asked.id: answer} if answer else {}
            complete |= {asked.id} if whole else set()
        elif isinstance(asked, Demonstration):
            shown = _find_newest_exhibit(asked, machine)
            found |= {asked.id: shown} if shown else {}
            complete |= {asked.id} if shown else set()
    return TaskAnswers(rows=rows, exhibits=found, missing=tuple(asked for asked in task if asked.id not in complete))


def find_recorded_exhibit(kind: str, machine: Machine | None, recipe: str = "") -> Exhibit | None:
    """The newest exhibit of a kind with an accelerator that this machine has not, showing a recipe if one is named."""
    here = machine.environment.machine_id if machine else ""
    found = [
        shown
        for shown in reads.list_exhibits()
        if shown.kind == kind
        and shown.machine_id != here
        and any(entry.kind != "cpu" for entry in shown.participants)
        and (not recipe or recipe in shown.demonstration.recipes)
    ]
    return max(found, key=lambda shown: shown.measured_at, default=None)


def find_recorded_trials(points: Sequence[Point], machine: Machine | None) -> tuple[Trial, ...]:
    """Rows of these trainings from the machine with an accelerator that has most of them, the newest run of each.

    Rows that were measured here are left out.
    """
    if not points:
        return ()
    wanted = pd.DataFrame([dataclasses.asdict(point) for point in points], columns=list(TRAINING))
    frame = reads.read_overview().frame
    elsewhere = frame["machine_id"] != (machine.environment.machine_id if machine else "")
    columns = [*TRAINING, "machine_id", "run_id", "device_kind", "started_at"]
    timed = frame.loc[elsewhere & (frame["pairs"] > 0), columns]
    found = timed.merge(wanted.assign(number=range(len(points))), on=list(TRAINING))
    runs = found.groupby("run_id")["device_kind"]
    found = found[(runs.transform("size") > 1) & runs.transform(lambda kinds: (kinds != "cpu").any())]
    newest = found.sort_values(["started_at", "run_id"]).drop_duplicates(["machine_id", "number"], keep="last")
    if newest.empty:
        return ()
    machine_id = newest.groupby("machine_id", observed=True).size().idxmax()
    best = newest[newest["machine_id"] == machine_id]
    number = dict(zip(best["run_id"], best["number"], strict=True))
    try:
        rows = [row for row in reads.find_rows(run_ids=list(number)) if row.block_steps]
    except StoreError as error:
        st.caption(plain(f"What was recorded on {machine_id} is not shown: {error}"))
        return ()
    return tuple(sorted(rows, key=lambda row: (number[row.run_id], row.trial_id)))


def list_task_jobs(task: Task) -> list[Job]:
    """The newest job of each question, in the order of the task; those never asked are left out."""
    store = reads.open_store().folder.absolute()
    newest: dict[str, Job] = {}
    for job in reads.open_queue().jobs():
        if job.store == store:
            newest[_make_question_key(job.asked)] = job
    return [newest[_make_question_key(asked)] for asked in task if _make_question_key(asked) in newest]


def submit_task(task: Task, questions: Sequence[Asked], *, fresh: bool) -> None:
    """Queue the wanted questions of a task, and show the page anew."""
    with show_errors():
        for asked in task:
            if asked in questions:
                permits.submit(asked, reads.open_store(), fresh=fresh)
        reads.read_machine()
        st.rerun()


def draw_task_button(task: Task, answers: TaskAnswers, answer: DeltaGenerator | None = None) -> bool:
    """The button that asks, or asks again; while something runs, how far it is: where the `answer` will be, if given.

    Returns:
        Whether something runs, or waits for its turn.
    """
    active = [job for job in list_task_jobs(task) if job.active]
    if active:
        with answer or contextlib.nullcontext():
            st.fragment(_draw_task_panel, run_every=live.REFRESH_S)(task, len(active))
        return True
    _draw_task_faults(task, answers)
    again = bool(answers.rows or answers.exhibits)
    words = "Run again" if not answers.missing else "Run the rest" if again else "Run"
    icon = ":material/replay:" if not answers.missing else ":material/play_arrow:"
    kind: Any = "secondary" if not answers.missing else "primary"
    wanted = answers.missing or task
    reason = permits.refusal(*wanted)
    if reason:
        st.caption(plain(reason))
    if st.button(words, key="learn_run", type=kind, icon=icon, disabled=bool(reason)):
        submit_task(task, wanted, fresh=not answers.missing)
    return False


def draw_waiting_button() -> None:
    """The button as long as this machine's devices are not known; none where nobody may run anything."""
    if not reads.explain_no_runs():
        st.button("Run", key="learn_waits", type="primary", icon=":material/play_arrow:", disabled=True)


def _draw_task_faults(task: Task, answers: TaskAnswers) -> None:
    """Say why parts have no answer; of what was stopped together only what had begun, where anything had."""
    missing = {_make_question_key(asked) for asked in answers.missing}
    ended = [
        job
        for job in list_task_jobs(task)
        if not job.active and job.message and _make_question_key(job.asked) in missing
    ]
    for message in dict.fromkeys(job.message for job in [job for job in ended if job.began] or ended):
        st.warning(plain(message))


def _draw_task_panel(task: Task, active_before: int) -> None:
    mine = list_task_jobs(task)
    active = [job for job in mine if job.active]
    if len(active) != active_before:
        st.rerun()
    if live.watch_job(active[0].id) is None:
        return
    live.draw_stop_button(active)
    now = next((job for job in active if job.state == "running"), None)
    done = len(task) - len(active)
    if now is None:
        live.draw_queue_place(active[0])
    else:
        draw_progress_bar(now.progress, f"Part {done + 1} of {len(task)} · " if len(task) > 1 else "")


def draw_progress_bar(progress: Progress | None, part: str = "") -> None:
    """Draw how far a measurement is, after words that say which part it is, if any."""
    said = _name_phase(progress)
    st.progress(progress.share if progress else 0.0, text=f"{part}{said[:1].upper()}{said[1:]}")


def _name_phase(progress: Progress | None) -> str:
    if progress is None:
        return "the measuring process is starting"
    sweep = progress.sweep
    if sweep is None:
        return plain(progress.phase)
    now = f", now {plain(sweep.size_label)}" if sweep.size_label else ""
    return f"{sweep.done} of {sweep.total} points done{now}, {plain(progress.phase)}"


def _make_question_key(request: Asked) -> str:
    return f"{type(request).__name__} {request.id}"


def _find_newest_exhibit(request: Demonstration, machine: Machine) -> Exhibit | None:
    facts = machine.environment
    found = exhibit_files.newest(
        reads.list_exhibits(), request, machine_id=facts.machine_id, torch_version=facts.torch_version
    )
    names = machine.device_names
    if found and any(names.get(entry.device, entry.device_name) != entry.device_name for entry in found.participants):
        return None  # of a card that was replaced
    return found
