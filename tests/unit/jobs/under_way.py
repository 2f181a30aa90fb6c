"""A run that is under way, its status and its rows."""

import json

from core.jobs import process
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment, Point
from tests import rows

ME = process.current_process()
EXPERIMENT = Experiment(point=Point(), contenders=(Contender(), Contender(threads=1)))


def status(queue: Queue, job: Job, **changes: object) -> None:
    """Change what is written down of a job behind everybody's back."""
    path = queue.folder / job.id / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def of(job: Job, **changes: object):
    """Rows of a job's own run."""
    return rows.run({"cpu": 1e-3, "cpu@1": 2e-3}, point=Point(), run_id=job.derive_run_id(EXPERIMENT), **changes)
