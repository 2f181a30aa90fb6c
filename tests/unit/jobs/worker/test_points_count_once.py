"""A point that two machines share: whichever dies, sleeps or comes late, its rows are there once."""

import collections
import contextlib
import dataclasses

import pytest

from core.files import atomic
from core.files.shared import mirror
from core.files.shared.mirror import Mirror
from core.files.shared.place import Place
from core.jobs.job import JobFolder
from core.jobs.queue import Queue
from core.jobs.worker.worker import Code, Worker
from core.results import compaction
from core.results.finding import mirrored
from core.results.reuse import CUT_OFF
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.worker.killed import Killed, die

POINT = sweep().experiment(sweep().points[0])


@pytest.fixture(params=["folder", "copies"])
def machines(request, tmp_path, monkeypatch):
    """Two machines that share a store: the folder itself, or a copy each of a place."""
    for name in ("BRING_EVERY_S", "AGAIN_S", "LAG_S"):
        monkeypatch.setattr(mirror, name, 0.0)
    (tmp_path / "place").mkdir()
    address = f"file://{tmp_path}/place"

    def machine(name):
        folder = tmp_path / "folder" if request.param == "folder" else mirror.made(address, tmp_path / name)
        return Queue(tmp_path / name / "jobs"), Store(folder)

    return machine("first"), machine("second")


def measure(machine, once="a"):
    """Measure the point in this process."""
    queue, store = machine
    job = queue.submit(POINT, store, once=once)
    bench = scripted_worker.bench(queue)
    Worker(queue, bench, bench.survey(), code=Code.scan(store.folder), idle_s=0.0).run()
    return job


def bury(machine, job, dead):
    """Let somebody at the machine find its job, whose process is dead."""
    queue, _ = machine
    now = queue.files(job.id).read()
    if now.active:
        queue.files(job.id).write(dataclasses.replace(now, worker=dead))
    queue.job(job.id)
    queue.settle()


def seen(machine):
    """By contender, how many whole rows a machine reads, and of how many runs."""
    _, store = machine
    mirrored.bring_now(store.folder)
    mirrored.bring_now(store.folder)
    rows = [row for row in store.trials(experiment_id=POINT.id) if row.outcome not in CUT_OFF]
    return collections.Counter(row.contender for row in rows), len({row.run_id for row in rows})


WHOLE = {str(contender): 1 for contender in POINT.contenders}, 1


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (Store, "add_all", 1),
        (JobFolder, "keep_unsaved", 1),
        (atomic, "flush_folder", 1),
        (Mirror, "_send", 1),
        (Place, "write", 2),
        (Queue, "end", 1),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)),
)
def test_a_kill_at_any_moment_leaves_the_point_to_the_other_machine_or_done(machines, dead, owner, name, call, after):
    first, second = machines
    job = first[0].submit(POINT, first[1], once="a")
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        die(owner, name, call=call, after=after, monkeypatch=patch)
        measure(first)
    assert seen(second) in (WHOLE, ({}, 0)), "others see all of a run or nothing"
    if not seen(second)[1]:
        measure(second)
    assert seen(second) == WHOLE
    bury(first, job, dead)
    assert seen(first) == seen(second) == WHOLE


@pytest.mark.parametrize("machines", ["copies"], indirect=True)
def test_who_was_cut_off_meanwhile_brings_no_second_run(machines, monkeypatch):
    first, second = machines
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "_send", lambda *_: None)
        measure(first)
    assert mirrored.waiting(first[1].folder) == 1
    measure(second)
    assert seen(first) == seen(second) == WHOLE
    assert mirrored.waiting(first[1].folder) == 0


def test_who_comes_after_the_rows_were_merged_brings_no_second_run(machines):
    first, second = machines
    measure(first)
    measure(second, once="other")
    assert seen(second)[1] == 2
    assert compaction.compact(second[1].folder).merged == 2
    measure(first)
    assert seen(first)[1] == seen(second)[1] == 2


def test_a_run_that_answers_something_else_counts_too(machines):
    first, second = machines
    measure(first, once="a")
    measure(second, once="b")
    assert seen(first)[1] == seen(second)[1] == 2
