"""Which stored run answers a question, so that it need not be measured again.

Only what was measured on this machine, with the devices and the torch that it has now, answers; imported rows never
do: machines of the same name may still differ. Nothing here measures or reads a file.
"""

import contextlib
import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.question.experiment import EVERY_EPOCH, Experiment
from core.results.schema import Trial

CUT_OFF = ("stopped", "interrupted")
"""Outcomes of trials that can be continued under the same name."""


@dataclass(frozen=True, kw_only=True)
class LocalMachine:
    """What would measure now.

    Attributes:
        machine_id: of this machine.
        torch_version: that would measure.
        device_names: device → its name, as far as it is known; rows of a card that was replaced do not answer.
    """

    machine_id: str
    torch_version: str
    device_names: Mapping[str, str] = field(default_factory=dict, hash=False)

    def has_measured(self, trial: Trial) -> bool:
        """Whether a row was measured by this."""
        known = (trial.origin, trial.machine_id, trial.torch_version) == ("", self.machine_id, self.torch_version)
        return known and trial.device_name == self.device_names.get(trial.device, trial.device_name)


Accepted: TypeAlias = Callable[[Experiment, Sequence[Trial]], bool]
"""Whether a whole run, one row a contender, is served as the answer to its question (`core.answer.speedup`)."""


def any_run(_asked: Experiment, _trials: Sequence[Trial]) -> bool:
    """Accepts whatever there is, for who shows what was measured."""
    return True


def newest_answers(
    trials: Iterable[Trial],
    experiments: Iterable[Experiment],
    local_machine: LocalMachine,
    *,
    since: str = "",
    accepted: Accepted = any_run,
) -> dict[str, list[Trial]]:
    """For each experiment the newest run measured here that answers it.

    A run answers a training that was asked for to its end if every contender trained all epochs, diverged, or spent
    at least the budget that is offered; one that may end once it is decided who is faster, also if all were timed only.
    It answers a question for times alone if every contender has as many pairs as
    are asked for, spent at least the budget that is offered, did not fit into memory, or has a lane that failed.

    Args:
        trials: rows of any experiments, in any order.
        experiments: the questions.
        local_machine: what would measure now.
        since: only runs that began then or later, ISO 8601 with an offset; empty for all.
        accepted: asked about each whole run whether it is served.

    Returns:
        Experiment id → one row a contender, in the experiment's order. Questions without an answer are left out.
    """
    asked = {experiment.id: experiment for experiment in experiments}
    runs: dict[str, dict[str, dict[str, Trial]]] = {name: {} for name in asked}
    for trial in sorted(trials, key=lambda trial: (trial.started_at, trial.trial_id)):
        experiment = asked.get(trial.experiment_id)
        if (
            experiment
            and local_machine.has_measured(trial)
            and _began_since(trial, since)
            and _answers_question(trial, experiment)
        ):
            runs[experiment.id].setdefault(trial.run_id, {})[trial.contender] = trial
    found = {name: _find_newest_complete(runs[name].values(), of, accepted) for name, of in asked.items()}
    return {name: rows for name, rows in found.items() if rows}


def completeness(outcome: str, steps: int) -> tuple[bool, int]:
    """What decides between rows of the same name: a trial that came to its end, then the one with more steps."""
    return outcome not in CUT_OFF, steps


def _find_newest_complete(
    runs: Iterable[Mapping[str, Trial]], experiment: Experiment, accepted: Accepted
) -> list[Trial]:
    """Of runs by age, contender → row, the last with every contender that is accepted; in the experiment's order."""
    wanted = [str(contender) for contender in experiment.contenders]
    for found in reversed(list(runs)):
        rows = [found[name] for name in wanted if name in found]
        if len(rows) == len(wanted) and accepted(experiment, rows):
            return rows
    return []


def _began_since(trial: Trial, since: str) -> bool:
    if not since:
        return True
    with contextlib.suppress(ValueError, TypeError):  # a time by another hand may be anything
        return datetime.datetime.fromisoformat(trial.started_at) >= datetime.datetime.fromisoformat(since)
    return False


def _answers_question(trial: Trial, experiment: Experiment) -> bool:
    """Whether one row answers its part of a question; nobody knows better what was cut off."""
    enough_time = trial.budget_s >= experiment.budget_s
    if experiment.pairs == EVERY_EPOCH:
        trained = trial.steps >= trial.epochs * trial.steps_per_epoch
        tested = bool(trial.confusion)  # where only times were asked for, nothing was
        return (
            trial.outcome == "completed"
            or (trial.outcome == "timed" and not experiment.whole)
            or (trial.outcome == "diverged" and (trained or enough_time))
            or (trial.outcome == "budget_spent" and tested and enough_time)
        )
    if trial.outcome in CUT_OFF:
        return trial.lane_failed
    by_the_budget = enough_time and trial.outcome in ("budget_spent", "diverged")
    return trial.outcome == "out_of_memory" or len(trial.block_pair) >= experiment.pairs or by_the_budget
