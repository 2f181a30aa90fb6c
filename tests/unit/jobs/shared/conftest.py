"""A machine at work for others, whose measuring process is a double that only writes rows."""

from types import SimpleNamespace

import pytest

from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.shared import board, member, presence
from core.jobs.shared.board import Question
from core.jobs.shared.member import Working
from core.question.experiment import Experiment
from core.results import environment
from tests.fakes import FakeClock
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

FOUND = Machine(environment=environment.read_environment(), devices=scripted_worker.DEVICES)


@pytest.fixture
def at(store, monkeypatch):
    monkeypatch.setattr(member, "LOOK_S", 0.001)
    monkeypatch.setattr(member, "_WATCH_S", 0.001)
    monkeypatch.setattr(presence, "SETTLE_S", -presence.TELL_S)
    return board.board_of(store.folder)


@pytest.fixture
def clock(monkeypatch):
    """What a member goes by: time passes where it waits and nowhere else, however busy this machine is."""
    made = FakeClock()
    monkeypatch.setattr(member, "time", SimpleNamespace(monotonic=lambda: made() / 1e9, sleep=made.pass_s))
    return made


@pytest.fixture
def working(at, store, queue, monkeypatch, clock):
    """A machine that measures what it is asked at once; `asked` has what it was asked, `told` what it said."""
    made = Working(at, store, queue, FOUND, lambda said: made.told.append(said))
    made.told, made.asked, made.failing = [], [], {}

    def measured(work, asked, lease):
        made.asked.append(asked)
        experiments = [asked] if isinstance(asked, Experiment) else [asked.experiment(point) for point in asked.points]
        message = next(
            (made.failing[e.point.hidden_size] for e in experiments if e.point.hidden_size in made.failing), ""
        )
        for number, experiment in enumerate(experiments if not message else ()):
            facts = {"machine_id": work.machine_id, "torch_version": FOUND.environment.torch_version}
            run_id = f"{len(made.asked):06x}{number:06x}"
            for row in scripted_worker.timed(experiment, run_id, **facts):
                store.add(row)
        state = "failed" if message else "finished"
        trials = tuple(f"{place}" for place, _ in enumerate(experiments))
        return Job(
            id="1",
            question=asked,
            store=store.folder,
            fresh=False,
            created_at="",
            state=state,
            message=message,
            trial_ids=trials,
        )

    monkeypatch.setattr(made, "_measured", measured)
    return made


def asked_of(spread, **changes):
    return Question(sweep=sweep(**changes), spread=spread)


def sizes(working):
    return [asked.point.hidden_size for asked in working.asked]
