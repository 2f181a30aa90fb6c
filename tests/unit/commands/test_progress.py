"""The progress of a job: a bar that never runs backwards, or a line for each phase where stderr is a file."""

import io
import re
import sys
from dataclasses import replace

import pytest

from core.commands import run
from core.jobs import client
from core.jobs.job import Job
from core.progress import ContenderProgress, Progress
from tests import rows

NOTE = "The machine was not quiet within 60 s, so the measurement starts anyway."
STEPS = (("warming up", 10), ("warming up", 70), ("timing, pair 1 of 6", 39), ("timing, pair 2 of 6", 80))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def note():
    return ""


@pytest.fixture
def follow(monkeypatch, tmp_path, note):
    """Follow a job through `STEPS`; returns what was written."""
    job = Job(id="1", question=rows.EXPERIMENT, store=tmp_path, fresh=False, created_at="", state="running")

    def report(_queue, _job_id, show):
        for phase, steps in STEPS:
            contender = ContenderProgress(contender="cpu", steps=steps, total_steps=100)
            show(replace(job, progress=Progress(phase=phase, contenders=(contender,), note=note)))
        return replace(job, state="finished")

    monkeypatch.setattr(client, "follow_job", report)
    monkeypatch.setattr(client, "is_renewed_for", lambda *_: False)

    def show(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        assert run.show_job_progress(None, job).state == "finished"
        return stream.getvalue()

    return show


def test_a_log_gets_a_line_for_each_phase(follow):
    assert follow(io.StringIO()).splitlines() == ["warming up", "timing, pair 1 of 6"]


@pytest.mark.parametrize("note", [NOTE])
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_note_on_the_machine_is_written_once(follow, note, stream):
    assert follow(stream()).count(note) == 1


def test_a_bar_never_runs_backwards(follow):
    shown = [int(percent) for percent in re.findall(r"(\d+)%", follow(Terminal()))]
    assert shown == sorted(shown)
    assert shown[-1] == 80
