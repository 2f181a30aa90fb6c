"""One job: what was asked for, and what became of it.

Plain data. The files in which it is written down are those of `core.jobs.job_folder`; which job is next, and who may
change what, is decided in `core.jobs.queue`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.jobs.cluster_machine import ClusterMachine, Spread
from core.jobs.process import Process, Surroundings
from core.jobs.uptime import Moment
from core.progress import Progress
from core.question.demonstration import Demonstration
from core.question.experiment import Experiment
from core.question.policy import Asked
from core.question.sweep import Sweep

State = Literal["queued", "running", "finished", "failed", "stopped", "crashed"]
"""How a job stands.

- queued: it waits for its turn.
- running: it is being measured, or waits until nothing else is measured on this machine.
- finished: its rows are complete.
- failed: it could not be measured; the message says why.
- stopped: by the user; what was measured by then is saved.
- crashed: the measuring process was killed; what it had saved by then is saved.
"""

ACTIVE: tuple[State, ...] = ("queued", "running")
"""States that end; the others are final."""

SILENCE_S = 300.0
SILENT_BUDGETS = 5.0
"""A worker that has said nothing for so long, and for so many times what a measurement may take, has lost its way.

Compiling a lane takes two minutes on a busy machine, and nothing is said meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """That a Ray cluster measures a sweep, and not this machine.

    Attributes:
        on: which cluster, as `--on` of the command line has it.
        spread: how the points are spread over its machines.
    """

    on: str
    spread: Spread = "everywhere"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one job is at the moment of looking.

    Attributes:
        id: its name, in the order of submission.
        asked: what is measured or shown: one experiment, a sweep of many, or a lesson's demonstration.
        store: folder that its rows go to.
        fresh: whether what an earlier, killed job left behind must not be continued.
        created_at: when it was submitted, ISO 8601, UTC.
        state: how it stands.
        place: 1 for the next in the queue; 0 when it no longer waits there.
        progress: how far the measurement is, or was; None before the first report.
        message: one sentence where there is something to say.
        run_ids: the runs its rows belong to: one for an experiment; for a sweep one a point, those found in the
            store among them, more while it runs.
        trial_ids: its rows, run by run in the order of the contenders.
        exhibit_id: name of what a lesson showed; empty before its end, and for all other jobs.
        missing: which rows that were asked for it has not, or not whole, and why; a sentence each.
        unsaved: whether the store refused rows or the exhibit of it, so that only the job has them.
        worker: the process that measures or measured it.
        asked_by: who asked, a name that says nothing about the person; empty for who did on the command line.
        asked_from: where from, a name that says nothing either and that many may share; empty as above.
        began: when its turn came; None before.
        reported: when the process that measures it last said so.
        surroundings: what it takes over from who asked; None where that was not written down: then any are right.
        elsewhere: where it is measured, if not here; the worker then is the driver of the cluster.
        machines: those of the cluster, as they told of themselves last.
        damage: why its state cannot be read, in one sentence; it then counts as running until it is settled.
    """

    id: str
    asked: Asked
    store: Path
    fresh: bool
    created_at: str
    state: State = "queued"
    place: int = 0
    progress: Progress | None = None
    message: str = ""
    run_ids: tuple[str, ...] = ()
    trial_ids: tuple[str, ...] = ()
    exhibit_id: str = ""
    missing: tuple[str, ...] = ()
    unsaved: bool = False
    worker: Process | None = None
    asked_by: str = ""
    asked_from: str = ""
    began: Moment | None = None
    reported: Moment | None = None
    surroundings: Surroundings | None = None
    elsewhere: Elsewhere | None = None
    machines: tuple[ClusterMachine, ...] = ()
    damage: str = ""

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that was asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Experiment) else None

    @property
    def sweep(self) -> Sweep | None:
        """The sweep that was asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Sweep) else None

    @property
    def demonstration(self) -> Demonstration | None:
        """What a lesson asked for; None for anything else."""
        return self.asked if isinstance(self.asked, Demonstration) else None

    @property
    def run_id(self) -> str:
        """The run that the job's newest rows belong to; empty before there are any."""
        return self.run_ids[-1] if self.run_ids else ""

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1: of one's own training, of whose steps nobody knows, of its pairs."""
        if self.experiment and self.experiment.point.training and self.progress:
            return min(1.0, self.progress.pairs / self.experiment.pairs)
        return self.progress.share if self.progress else 0.0

    @property
    def active(self) -> bool:
        """Whether the job waits or runs."""
        return self.state in ACTIVE

    @property
    def complete(self) -> bool:
        """Whether the job has ended with every row that was asked for."""
        return self.state == "finished" and not self.missing

    @property
    def lost(self) -> bool:
        """Whether the job is said to run in a process that does not live any more."""
        return self.state == "running" and not (self.worker and self.worker.alive)

    @property
    def silent_s(self) -> float:
        """Seconds for which nothing was heard of the job while it runs; 0 where that is not known.

        Of the system's uptime: neither a clock that is set nor a machine that sleeps makes anybody silent.
        """
        return (self.reported.ago_s or 0.0) if self.reported and self.state == "running" else 0.0

    @property
    def silent_too_long(self) -> bool:
        """Whether nothing was heard of the job for much longer than a measurement may take: nothing will be."""
        budget_s = self.sweep.point_budget_s if self.sweep else self.asked.budget_s
        return self.silent_s > max(SILENCE_S, SILENT_BUDGETS * budget_s)

    @property
    def cut_off_by(self) -> str:
        """What cut the job off if its process is gone, as the beginning of a sentence."""
        if self.damage:
            return f"{self.damage.rstrip('.')}, and nobody measures it"
        return "The measuring process was killed"

    def suits(self, surroundings: Surroundings | None) -> bool:
        """Whether the job can be measured by a process with these surroundings, as far as they are known."""
        return None in (self.surroundings, surroundings) or self.surroundings == surroundings

    def run_of(self, experiment: Experiment) -> str:
        """Name of the run in which this job measures an experiment, 12 hexadecimal digits; the same at every call.

        So whoever finds the job dead knows which rows of the store are its own.
        """
        return hashlib.sha256(f"{self.id} {experiment.id}".encode()).hexdigest()[:12]
