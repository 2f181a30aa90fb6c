"""`contribute` from end to end on this machine: one training of each kind, measured briefly, packed and read back."""

import io
import zipfile

import pytest

from core import __main__ as command_line
from core.answer import contribution
from core.jobs import client
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.results import quarantine
from core.results.parquet import from_table
from tests import brief

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A queue of its own whose worker measures briefly; of the eight trainings two."""
    monkeypatch.setenv(JOBS_VARIABLE, str(tmp_path / "jobs"))
    monkeypatch.setenv("CROSSOVER_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(client, "COMMAND", brief.COMMAND)
    few = {name: contribution.TRAININGS[name] for name in (contribution.SCRIPTED, "digits, convolutional")}
    monkeypatch.setattr(contribution, "TRAININGS", few)
    yield tmp_path
    Queue(tmp_path / "jobs").worker_file.dismiss()


def test_a_file_is_measured_written_and_read_back(here, capsys):
    assert command_line.main(["contribute", "--yes", "--device", "cpu", "--output", str(here)]) == 0
    shown = capsys.readouterr().out
    (file,) = here.glob("crossover-*.zip")
    with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as packed:
        assert set(packed.namelist()) == {contribution.ROWS, contribution.FACTS, contribution.CHECKS}
        rows = from_table(quarantine.read_foreign_file(packed.read(contribution.ROWS)))
        checks = contribution._from_json(packed.read(contribution.CHECKS), contribution.CHECKS)
        facts = contribution._from_json(packed.read(contribution.FACTS), contribution.FACTS)
    assert {(row.dataset, row.contender.partition("@")[0]) for row in rows} == {("disc", "cpu"), ("digits", "cpu")}
    assert all(len(row.step_s) >= contribution.PAIRS for row in rows)
    assert set(checks["devices"]) == {"cpu"}
    assert set(checks["script"]) == {row.contender for row in rows}
    assert str(here) not in shown.replace(str(file), "")
    for row in rows:  # what a file of a clean commit is held against, by which this checkout need not be clean
        contribution._check_blocks(row)
        contribution._check_busy(row)
    contribution._check_facts(rows, checks, facts)
    for run_id in {row.run_id for row in rows}:
        contribution._check_run([row for row in rows if row.run_id == run_id])
