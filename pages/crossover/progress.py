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
from pages.shared.draw.text import plain, show_errors
from pages.shared.job import live

SHOWN_NOTES = 5
"""Notes shown while it runs, the newest; all of them are kept for the end."""


SAME = 1.2
"""Ratio of the ends of an estimate up to which one figure says as much."""


def draw_sweep_job(job: Job) -> None:
    """Draw a sweep that waits or runs, and keep it up to date until it ends."""
    if job.sweep:
        st.fragment(_draw_sweep_panel, run_every=live.REFRESH_S)(job.id, job.sweep)


def draw_sweep_notes(job: Job) -> None:
    """Draw what a sweep said of points without times, and why it ended."""
    said = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if len(said) == 1:
        st.caption(plain(said[0]))
    elif said:
        with st.expander(f"{len(said)} notes about the search"):
            for note in said:
                st.caption(plain(note))


def _draw_sweep_panel(job_id: str, request: Sweep) -> None:
    job = live.draw_job_head(job_id)
    if job and job.elsewhere:
        elsewhere.draw_remote_sweep(job, request)
    elif job:
        _draw_sweep_progress(request, job.progress or Progress(phase="starting"))
        _draw_sweep_so_far(job, request)


def _draw_sweep_progress(request: Sweep, progress: Progress) -> None:
    of = progress.sweep
    if of is None:
        st.progress(0.0, text=live.STARTING)
        return
    counted = f"{units.counted(of.done, 'size')} done" if request.adaptive else f"{of.done} of {of.total} points done"
    if of.alive > 1:
        counted += f", {of.alive} under way ({of.pairs} of {of.alive * of.pairs_each} pairs)"
    now = f"now {plain(of.size_label)}, {plain(progress.phase)}" if of.size_label else plain(progress.phase)
    st.progress(
        _measure_share(of, progress.elapsed_s, adaptive=request.adaptive),
        text=f"**{counted}** · {now}{_describe_sweep_time_left(of)}",
    )
    steps = [
        f"{plain(titled(contender.contender))} {units.duration(contender.step_s)} a step"
        for contender in progress.contenders
        if contender.step_s is not None
    ]
    if steps:
        st.caption(" · ".join(steps))
    for note in of.notes[-SHOWN_NOTES:]:
        st.caption(plain(note))


def _describe_sweep_time_left(progress: SweepProgress) -> str:
    """The time that is left, as a range where how many sizes a search needs is not known."""
    if progress.remaining_s is None:
        return ""
    if progress.least_s is None or progress.remaining_s < SAME * progress.least_s:
        return f" · about {units.rough(progress.remaining_s)} left"
    return f" · about {units.rough(progress.least_s)} to {units.rough(progress.remaining_s)} left"


def _measure_share(progress: SweepProgress, elapsed_s: float, *, adaptive: bool) -> float:
    """Share that is done: of a search, which may end at any size, of the time that it is expected to take."""
    if not adaptive or progress.remaining_s is None or not elapsed_s:
        return progress.share if not adaptive else 0.0
    return elapsed_s / (elapsed_s + ((progress.least_s or 0.0) + progress.remaining_s) / 2)


@show_errors(st.caption)
def _draw_sweep_so_far(job: Job, request: Sweep) -> None:
    axis = request.axes[0].name
    rows = reads.find_job_rows(job)
    found = study_view.pick_main_study(prepared.group_studies(rows, axis), request)
    if met := accelerators.find_meetings(rows, axis, reads.read_machine()):
        accelerators.draw_meeting_so_far(met[0])
    if found is None:
        return
    located = prepared.locate_crossover(found, "steady")
    if len(found.runs) > 1:
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")
    study_view.draw_crossover_chart(located)
