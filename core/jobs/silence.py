"""How long nothing was heard of a running job, and when that means that nothing will be.

Seconds are of the system's uptime: neither a clock that is set nor a machine that sleeps makes anybody silent. What is
done about it is decided in `core.jobs.queue`.
"""

from core.jobs.job import Job

SILENCE_S = 300.0
SILENT_BUDGETS = 5.0
"""A worker that has said nothing for so long, and for so many times what a measurement may take, has lost its way.

Compiling a lane takes two minutes on a busy machine, and nothing is said meanwhile."""


def cut_off_by(job: Job) -> str:
    """What cut a job off whose process is gone."""
    return f"{job.damage.rstrip('.')}, and nobody measures it" if job.damage else "The measuring process was killed"


def lasted_s(job: Job) -> float:
    """Seconds since a running job was heard of last; 0 where that is not known."""
    return (job.reported.ago_s or 0.0) if job.reported and job.state == "running" else 0.0


def too_long(job: Job) -> bool:
    """Whether nothing was heard of a running job for much longer than a measurement may take."""
    budget_s = job.sweep.point_budget_s if job.sweep else job.asked.budget_s
    return lasted_s(job) > max(SILENCE_S, SILENT_BUDGETS * budget_s)
