"""Whose turn it is: the order of the jobs that wait (docs/decisions/0006).

Where people ask from takes turns, and at each place its people: everybody's first before anybody's second, who had a
turn last comes last. So a visitor who comes under a new name each time takes the turns of nobody elsewhere. Nothing
here changes a job.
"""

import collections
from collections.abc import Sequence

from core.jobs.job import Job
from core.jobs.usage import Usage


def places(waiting: Sequence[Job], usage: Usage) -> dict[str, int]:
    """Job id → the job's place in the queue, 1 for the next.

    Args:
        waiting: jobs that wait, in the order of submission.
        usage: when everybody's last turn was.
    """
    if not waiting:
        return {}
    turns = usage.turns({name for job in waiting for name in (job.asked_by, _source(job))})
    asked: collections.Counter[str] = collections.Counter()
    by_source: dict[str, list[tuple[int, int, str]]] = {}
    for job in waiting:
        by_source.setdefault(_source(job), []).append((asked[job.asked_by], turns[job.asked_by], job.id))
        asked[job.asked_by] += 1
    order = [
        (rank, turns[source], job_id)
        for source, theirs in by_source.items()
        for rank, (_, _, job_id) in enumerate(sorted(theirs))
    ]
    return {job_id: place for place, (_, _, job_id) in enumerate(sorted(order), start=1)}


def _source(job: Job) -> str:
    """Where a job was asked from; who says nothing of that is a place of their own."""
    return job.asked_from or job.asked_by
