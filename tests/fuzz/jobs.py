"""Files of jobs, of the measuring process and of who asked: who reads them, and what the app goes on to do."""

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from core.jobs import client, process
from core.jobs.job import JobFolder
from core.jobs.queue import Queue
from core.jobs.usage import Terms
from pages.shared import permits
from tests import rows
from tests.fuzz.files import Kind
from tests.fuzz.watching import Fault, require_sentence, said
from tests.fuzz.worlds import Inhabited

SOMEBODY = "browser-0123456789abcdef"


def _look_at_jobs(world: Inhabited, place: str) -> bool:
    job_id = Path(world.path(place)).parent.name
    read = said(JobFolder(world.jobs / job_id).read)
    taken = read is not None and not read.damage
    queue = Queue(world.jobs)
    found = {job.id: job for job in said(queue.jobs) or ()}
    for job in world.all_jobs:
        if job.id != job_id and (job.id not in found or found[job.id].question != job.question or found[job.id].damage):
            raise Fault(f"the job {job.id} beside it is not read any more: {found.get(job.id)}")
        if known := said(functools.partial(queue.job, job.id)):
            said(functools.partial(client.load_job_rows, queue, known))
            said(functools.partial(client.exhibit, queue, known))
            known.progress and known.progress.share  # noqa: B018 - it is worked out, and must be
    said(queue.waiting)
    return taken


def _go_on_with_jobs(world: Inhabited, draw: Random) -> None:
    queue, store = Queue(world.jobs), world.app.store
    job = draw.choice(world.all_jobs)
    terms = Terms(seconds_per_day=3_600.0, waiting=5)
    asked = dataclasses.replace(rows.EXPERIMENT, budget_s=33.0)
    acts: tuple[Callable[[], object], ...] = (
        lambda: queue.submit(asked, store, asked_by=SOMEBODY, terms=terms),
        lambda: queue.submit(rows.EXPERIMENT, store, asked_by=SOMEBODY),
        lambda: queue.claim(process.current_process()),
        lambda: queue.request_stop(job.id),
        lambda: queue.kill(job.id),
        queue.settle,
        lambda: client.watch(queue, job.id),
        lambda: queue.report(world.running),
        lambda: queue.end(dataclasses.replace(world.running, state="finished")),
    )
    for act in draw.sample(acts, draw.choice((1, 2, 4))):
        said(act)
    said(queue.jobs)


def _status_of(place: str) -> tuple[str, ...]:
    """A job that nobody measures any more is settled by who looks, and charged."""
    return (f"{place.rpartition('/')[0]}/status.json", "jobs/people.json")


JOB_VIEWS = ("compare", "compare-ended", "compare-running", "compare-waiting", "crossover", "crossover-swept")
JOB_VIEWS += ("devices", "class-student", "gallery")
JOBS = ("jobs/{running}", "jobs/{ended}", "jobs/{waiting}", "jobs/{swept}", "jobs/{shown}")
IN_A_JOB = tuple(f"{job}/{name}" for job in JOBS for name in ("request.json", "status.json"))
IN_A_JOB += ("jobs/{shown}/exhibit.json", "jobs/{running}/partial.parquet")


# The measuring process and the people


def _look_at_the_worker(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    known = said(lambda: queue.worker_file.serving)
    said(lambda: (queue.worker_file.is_served, queue.worker_file.locked))
    _look_at_jobs(world, "jobs/none/none")
    return known is not None


def _go_on_with_the_worker(world: Inhabited, draw: Random) -> None:
    queue = Queue(world.jobs)
    with contextlib.suppress(PermissionError):
        said(queue.worker_file.dismiss)  # before anybody is started, who would be one of ours
    with queue.worker_file.lock() if draw.random() < 0.7 else contextlib.nullcontext():
        said(lambda: client.ensure_worker(queue))
    _go_on_with_jobs(world, draw)


def _look_at_the_machine(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    found = said(lambda: client.load_machine(queue))
    if found:
        json.dumps(found.to_json())
        hash(found.local_machine)
    return found is not None


def _look_at_the_people(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    terms = Terms(seconds_per_day=3_600.0, waiting=5)
    spent = said(lambda: queue.usage.turns(["address-0123456789abcdef"]))
    said(lambda: queue.usage.seconds_on_day(SOMEBODY, "2026-11-22"))
    reason = said(lambda: queue.refusal([rows.EXPERIMENT], SOMEBODY, terms))
    if reason:
        require_sentence(reason)
    said(queue.jobs)
    return bool(spent and spent["address-0123456789abcdef"])


def _look_at_the_salt(world: Inhabited, place: str) -> bool:
    """What the names of people are made of: whatever is there, they can be told apart, or nobody is named."""
    return said(lambda: permits._salt(world.jobs)) == "0123456789abcdef" * 4


def _go_on_with_the_people(world: Inhabited, draw: Random) -> None:
    queue = Queue(world.jobs)
    said(lambda: queue.usage.take_turn(SOMEBODY, "address-0123456789abcdef"))
    said(lambda: queue.usage.charge(SOMEBODY, 3.5, "2026-11-22"))
    _go_on_with_jobs(world, draw)


KINDS = (
    Kind(
        name="job",
        places=IN_A_JOB,
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="request",
        places=tuple(f"{job}/request.json" for job in JOBS),
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="status",
        places=tuple(f"{job}/status.json" for job in JOBS),
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="worker",
        places=("jobs/worker.json",),
        look=_look_at_the_worker,
        views=JOB_VIEWS,
        act=_go_on_with_the_worker,
        may_change=lambda _: ("jobs/worker.json", "jobs/{waiting}/status.json", "jobs/{swept}/status.json"),
    ),
    Kind(
        name="machine",
        places=("jobs/machine.json",),
        look=_look_at_the_machine,
        views=("compare", "compare-run", "crossover", "devices", "lessons", "tutorials", "class-student"),
        act=_go_on_with_jobs,
    ),
    Kind(
        name="people",
        places=("jobs/people.json",),
        look=_look_at_the_people,
        views=JOB_VIEWS,
        act=_go_on_with_the_people,
    ),
    Kind(
        name="salt",
        places=("jobs/salt",),
        look=_look_at_the_salt,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        total=500,
        seen=0.2,
    ),
)
