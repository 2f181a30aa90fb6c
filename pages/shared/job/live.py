"""A job as it is now: its place in the queue, the time left, the speedup so far, its loss curve, what became of it.

Asks every other second while the job is alive and not at all afterwards. The end of a job is one full run of the page.
"""

from collections.abc import Callable, Sequence

import streamlit as st

from core import units
from core.answer.run.run_answer import RunAnswer
from core.answer.run.speedup import Speedup
from core.jobs import client
from core.jobs.job import Job
from core.progress import ContenderProgress, Progress
from core.question.experiment import spoken, titled
from core.text import as_lines
from pages.shared.data import prepared, reads
from pages.shared.draw import charts
from pages.shared.draw.text import plain, told
from pages.shared.frame import navigation, permits

STARTING = "The measuring process is starting."
"""What stands in the place of progress before there is any."""

REFRESH_S = 2.0
"""Fast enough to follow, slow enough that neither a class of thirty watching nor one's own browser, which draws on the
same processor, disturbs what is measured."""

SHOWN_IN = {"clock": "clock", "moving": "moving", "first_step": "learning"}
"""Kind of a demonstration → the lesson that shows it."""

CHART_HEIGHT = 300
"""Pixels."""


def draw(job: Job) -> None:
    """Draw a comparison that waits or runs, and keep it up to date until it ends."""
    st.fragment(_panel, run_every=REFRESH_S)(job.id)


def draw_end(job: Job, again: Callable[[], None]) -> None:
    """Draw what became of a job that did not simply finish; run again, a sweep goes on behind the points stored."""
    if job.state == "finished" and not job.message:
        return
    box = st.error if job.state in ("failed", "crashed") else st.warning
    said, *traceback = (job.message or f"This measurement has {job.state}.").splitlines()
    box(plain(said))
    if traceback:  # of one's own training, as it was written
        st.code(as_lines("\n".join(traceback)), language=None)
    continues = bool(job.sweep and job.trial_ids)
    if job.state == "finished":
        return
    reason = permits.refusal(job.asked)
    if reason:
        st.caption(plain(reason))
    if st.button("Run again (continues)" if continues else "Run again", disabled=bool(reason)):
        again()


def elsewhere(job: Job) -> None:
    """Say that a link is to a job that another page shows, and lead there."""
    if job.sweep:
        what, page, label, link = "a sweep", navigation.CROSSOVER, "Show it in Crossover", {"job": job.id}
    elif job.experiment:
        what, page, label, link = "a comparison", navigation.COMPARE, "Show it in Compare", {"job": job.id}
    else:
        kind = job.demonstration.kind if job.demonstration else ""
        what, page, label = "a demonstration", navigation.LESSONS, "Show its lesson"
        link = {"lesson": SHOWN_IN[kind]} if kind in SHOWN_IN else {}
    st.info(f"This link is to {what}, which this page does not show.")
    st.page_link(page, label=label, query_params=link)


@told()
def watched(job_id: str) -> Job | None:
    """A job as it is now, its worker seen to; None, with the sentence why, where that cannot be told."""
    return client.watch(reads.queue(), job_id)


def running(job_id: str) -> Job | None:
    """Draw the head of a job that waits or runs, and the page anew once it has ended; the job while it is measured."""
    job = watched(job_id)
    if job is None:
        return None
    if not job.active:
        st.rerun()
    if job.elsewhere and reads.queue().files(job.id).asked_to_stop:
        st.caption("The machines are told to stop; each does at the end of its block.")
    else:
        stop_button([job])
    if job.state == "queued":
        place(job)
        return None
    return job


def _panel(job_id: str) -> None:
    if job := running(job_id):
        progress = job.progress or Progress(phase="starting")
        phase, left = progress.phase, progress.remaining_s
        after = "" if not left else f" · at most {units.rough(left)} left"
        st.progress(job.share, text=f"**{plain(phase[:1].upper() + phase[1:])}**{after}")
        _so_far(job)
        _curves(job, progress)


@told(st.caption)
def _so_far(job: Job) -> None:
    """The speedups that follow from the pairs by now, as they will be told in the end."""
    pairs = RunAnswer(reads.job_rows(job)).pairs
    with st.container(horizontal=True, key="so_far"):
        for pair in pairs:
            _speedup(pair.speedup)


def _speedup(found: Speedup) -> None:
    name, measured = plain(spoken(found.challenger)), units.counted(found.pairs, "pair")
    label = f"Speedup of {name} so far"
    if found.value is None or found.low is None or found.high is None:
        with st.container(width="content"):
            st.metric(label, "…", delta=measured, delta_color="off", delta_arrow="off", width="content")
            if found.reason:
                st.caption(plain(f"No verdict yet: {found.reason}."))
        return
    interval = f"95 %: {units.ratio(found.low)} to {units.ratio(found.high)}, {measured}"
    st.metric(label, units.ratio(found.value), delta=interval, delta_color="off", delta_arrow="off", width="content")


def stop_button(jobs: Sequence[Job]) -> None:
    """Draw the button that ends jobs that belong together, in the order of the queue.

    It belongs above whatever grows while they run: a button that moves is missed by who is about to press it.
    """
    ids = tuple(job.id for job in jobs)
    with st.container(horizontal=True, vertical_alignment="center"):
        if reason := permits.stop_refusal(jobs):
            st.caption(plain(reason), width="content")
        else:
            st.button("Stop", key="stop", icon=":material/stop_circle:", on_click=_stop, args=(ids,))
        st.caption("It goes on when this page is closed; open the page again to see it.", width="content")


def place(job: Job) -> None:
    others = [other for other in reads.queue().jobs() if bool(other.elsewhere) == bool(job.elsewhere)]
    if job.place > 1 or any(other.state == "running" and other.id != job.id for other in others):
        whose = " of the cluster" if job.elsewhere else ""
        why = "One measurement at a time keeps the times honest; people take turns."
        st.info(f"Place {job.place} in the queue{whose}. {why}")
    elif job.elsewhere:
        st.info("Place 1 in the queue of the cluster. Its machines are about to be asked.")
    else:
        st.info(f"Place 1 in the queue. {reads.loading() or 'The measuring process is about to take it.'}")


def _curves(job: Job, progress: Progress) -> None:
    own = bool(job.experiment and job.experiment.point.training)
    if any(len(contender.losses) > 1 for contender in progress.contenders):  # one point is no curve
        spec = prepared.live_chart(job.id, progress.elapsed_s, progress, own)
        charts.chart(spec, height=CHART_HEIGHT, alt="Training loss so far")
    st.caption("  \n".join(map(_line, progress.contenders)))


def _line(contender: ContenderProgress) -> str:
    total = contender.total_steps
    done = (
        f"{units.count(min(contender.steps, total))} of {units.count(total)}" if total else units.count(contender.steps)
    )
    name = titled(contender.contender)
    parts = [f"**{plain(name)}**", f"step {done}"]
    if contender.step_s is not None:
        parts.append(f"{units.duration(contender.step_s)} a step")
    if contender.losses:
        parts.append(f"loss {units.significant(contender.losses[-1])}")
    if contender.threads and "thread" not in name:
        parts.append(units.counted(contender.threads, "thread"))
    return " · ".join(parts)


@told()
def _stop(job_ids: Sequence[str]) -> None:
    """End the waiting ones first, so that none of them begins meanwhile."""
    permits.stop(reversed(job_ids))
