import pytest

from core.jobs import process
from core.jobs.worker import reporter as record_module
from core.jobs.worker.reporter import Reporter
from core.progress import Progress
from tests import rows
from tests.integration.scripted_worker import QUICK, experiment


@pytest.fixture
def record(queue, store):
    queue.submit(experiment(QUICK), store)
    return Reporter(queue, queue.claim(process.current_process()))


def test_progress_is_written_at_once_when_the_phase_changes_and_rarely_within_one(queue, record, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(record_module.time, "monotonic", lambda: now[0])
    written = []
    monkeypatch.setattr(
        type(queue), "report", lambda self, job: written.append((job.progress.phase, job.progress.pairs)) or True
    )
    for pairs in range(1, 11):
        now[0] += 0.1
        record.progress(Progress(phase="training", pairs=pairs))
    record.progress(Progress(phase="testing", pairs=11))
    pairs_written = [pairs for _, pairs in written]
    assert written[0] == ("training", 1)
    assert written[-1] == ("testing", 11)
    assert 4 <= len(pairs_written) <= 7


def test_a_full_disk_does_not_end_a_measurement(queue, record, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(queue), "report", full)
    monkeypatch.setattr("core.files.documents.replace", full)
    record.progress(Progress(phase="training"))
    record.keep(rows.run())
    assert caplog.text.count("No space left") == 1
    assert "they stay in memory" in caplog.text
