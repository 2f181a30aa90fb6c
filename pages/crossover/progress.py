"""A sweep as it is now: its place in the queue, the points done, the time left, and the answer as it grows.

Asks once a second while the job is alive and not at all afterwards. The end of a job is one full run of the page.
"""

import streamlit as st

from core import units
from core.jobs.job import Job
from core.progress import Progress, SweepProgress
from core.question.experiment import titled
from core.question.sweep import Sweep
from pages.crossover import elsewhere
from pages.shared.answer import accelerators, study_view
from pages.shared.data import prepared, reads
from pages.shared.draw.text import plain, told
from pages.shared.job import live

SHOWN_NOTES = 5
"""Notes shown while it runs, the newest; all of them are kept for the end."""


SAME = 1.2
"""Ratio of the ends of an estimate up to which one figure says as much."""


def draw(job: Job) -> None:
    """Draw a sweep that waits or runs, and keep it up to date until it ends."""
    if job.sweep:
        st.fragment(_panel, run_every=live.REFRESH_S)(job.id, job.sweep)


def notes(job: Job) -> None:
    """Draw what a sweep said of points without times, and why it ended."""
    said = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if len(said) == 1:
        st.caption(plain(said[0]))
    elif said:
        with st.expander(f"{len(said)} notes about the search"):
            for note in said:
                st.caption(plain(note))


def _panel(job_id: str, asked: Sweep) -> None:
    job = live.running(job_id)
    if job and job.elsewhere:
        elsewhere.progress(job, asked)
    elif job:
        _progress(asked, job.progress or Progress(phase="starting"))
        _so_far(job, asked)


def _progress(asked: Sweep, progress: Progress) -> None:
    of = progress.sweep
    if of is None:
        st.progress(0.0, text=live.STARTING)
        return
    counted = f"{units.counted(of.done, 'size')} done" if asked.adaptive else f"{of.done} of {of.total} points done"
    if of.alive > 1:
        counted += f", {of.alive} under way ({of.pairs} of {of.alive * of.pairs_each} pairs)"
    now = f"now {plain(of.size_label)}, {plain(progress.phase)}" if of.size_label else plain(progress.phase)
    st.progress(_share(of, progress.elapsed_s, adaptive=asked.adaptive), text=f"**{counted}** · {now}{_left(of)}")
    steps = [
        f"{plain(titled(contender.contender))} {units.duration(contender.step_s)} a step"
        for contender in progress.contenders
        if contender.step_s is not None
    ]
    if steps:
        st.caption(" · ".join(steps))
    for note in of.notes[-SHOWN_NOTES:]:
        st.caption(plain(note))


def _left(of: SweepProgress) -> str:
    """The time that is left, as a range where how many sizes a search needs is not known."""
    if of.remaining_s is None:
        return ""
    if of.least_s is None or of.remaining_s < SAME * of.least_s:
        return f" · about {units.rough(of.remaining_s)} left"
    return f" · about {units.rough(of.least_s)} to {units.rough(of.remaining_s)} left"


def _share(of: SweepProgress, elapsed_s: float, *, adaptive: bool) -> float:
    """Share that is done: of a search, which may end at any size, of the time that it is expected to take."""
    if not adaptive or of.remaining_s is None or not elapsed_s:
        return of.share if not adaptive else 0.0
    return elapsed_s / (elapsed_s + ((of.least_s or 0.0) + of.remaining_s) / 2)


@told(st.caption)
def _so_far(job: Job, asked: Sweep) -> None:
    axis = asked.axes[0].name
    rows = reads.job_rows(job)
    found = study_view.main(prepared.studies(rows, axis), asked)
    if met := accelerators.meetings(rows, axis, reads.machine()):
        accelerators.draw_so_far(met[0])
    if found is None:
        return
    located = prepared.located(found, "steady")
    if len(found.runs) > 1:
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")
    study_view.chart(located)
