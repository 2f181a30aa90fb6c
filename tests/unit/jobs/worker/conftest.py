"""A worker that measures points at once, and a note of every visit."""

import dataclasses

import pytest

from core.jobs.worker import sweep
from core.jobs.worker.sweep import Fit
from core.jobs.worker.worker import Code, Worker
from tests.integration import scripted_worker
from tests.unit.jobs.worker.points import Measure, Visits


@pytest.fixture
def visits() -> Visits:
    return Visits()


@pytest.fixture
def serve(queue, tmp_path, visits, monkeypatch):
    monkeypatch.setattr(sweep, "KEEP_EVERY_S", 0.0)

    def serve(measure: Measure, fit: Fit = lambda new, alive: True) -> str:
        bench = dataclasses.replace(scripted_worker.bench(queue), begin=visits.begin(measure), fit=fit)
        ended = Worker(queue, bench, bench.survey(), code=Code.scan(tmp_path / "code"), idle_s=0.0).run()
        assert all(point.released for point in visits.points)
        return ended

    return serve
