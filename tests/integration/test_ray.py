"""A real Ray cluster of processes on this machine, whose nodes have jobs, a lock and a name each."""

import importlib.util
import json
import os

import pytest

from core.jobs import client
from core.jobs.cluster_machine import RayMachines
from core.jobs.job import RemoteTarget
from core.jobs.queue import Queue
from core.results.store import Store
from tests import nodes
from tests.integration import scripted_node
from tests.integration.following import kill, until
from tests.integration.scripted_worker import UNTIL_RELEASED, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install -r requirements-cluster.txt",
    ),
]

SIZES = tuple(range(8, 8 + 24))
SHARED = RemoteTarget(on="ray", spread="shared")
ONCE = sorted((size, contender) for size in SIZES for contender in ("cpu@1", "cpu"))


@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    monkeypatch.setattr(client, "DRIVER", scripted_node.DRIVER)


@pytest.fixture
def add(tmp_path):
    with nodes.ray_cluster(tmp_path) as add:
        yield add


def ask(folder, elsewhere=SHARED, **changes):
    """The queue of who asks, and a job that the cluster measures."""
    queue = Queue(folder / "asker" / "jobs")
    job = queue.submit(sweep(**{"sizes": SIZES, **changes}), Store(folder / "store"), elsewhere=elsewhere)
    client.watch(queue, job.id)
    return queue, job


def measured(folder):
    """Each size and contender as often as it was measured to the end."""
    rows = Store(folder / "store").trials()
    return sorted((row.hidden_size, row.contender) for row in rows if row.outcome == "timed")


@pytest.mark.timeout(400)
def test_every_point_is_measured_once_though_a_node_is_killed_and_one_is_added(add, tmp_path):
    for name in ("one", "two", "three"):
        add(name)
    queue, job = ask(tmp_path)
    until(lambda: measured(tmp_path), lambda found: len(found) >= 6)
    nodes.kill_machine(tmp_path / "one")
    add("four")
    ended = until(lambda: client.watch(queue, job.id), lambda job: not job.active)
    assert (ended.state, ended.complete) == ("finished", True), ended.message
    assert measured(tmp_path) == ONCE
    assert len(client.load_job_rows(queue, ended)) == len(ONCE)
    until(
        lambda: list(nodes.find_processes(tmp_path / "two", "tests.integration.scripted_worker")), lambda left: not left
    )


@pytest.mark.timeout(400)
def test_the_process_of_a_node_and_then_the_driver_are_killed_and_the_same_sweep_goes_on_and_can_be_stopped(
    add, tmp_path
):
    for name in ("one", "two"):
        add(name)
    queue, job = ask(tmp_path)
    until(lambda: measured(tmp_path), lambda found: len(found) >= 4)
    [process] = nodes.find_processes(tmp_path / "one", "tests.integration.scripted_node")
    process.kill()
    before = len(measured(tmp_path))
    until(lambda: measured(tmp_path), lambda found: len(found) >= min(before + 8, len(ONCE)))
    kill(queue.driver_file.serving.process.pid)
    crashed = until(lambda: queue.job(job.id), lambda job: not job.active)
    assert (crashed.state, "run it again to continue" in crashed.message) == ("crashed", True)
    _, again = ask(tmp_path)
    ended = until(lambda: client.watch(queue, again.id), lambda job: not job.active)
    assert (ended.state, ended.complete) == ("finished", True), ended.message
    assert measured(tmp_path) == ONCE

    _, endless = ask(tmp_path, script=UNTIL_RELEASED, sizes=(8, 16))
    until(
        lambda: client.watch(queue, endless.id),
        lambda job: [machine.state for machine in job.machines] == ["measuring"] * 2,
    )
    client.stop(queue, endless.id)
    stopped = until(lambda: client.watch(queue, endless.id), lambda job: not job.active)
    assert (stopped.state, "were stopped" in stopped.message) == ("stopped", True)
    until(
        lambda: [job for name in ("one", "two") for job in Queue(tmp_path / name / "jobs").active()],
        lambda jobs: not jobs,
    )


@pytest.mark.timeout(400)
def test_each_machine_measures_all_points_under_a_name_of_its_own(add, tmp_path):
    for name in ("one", "two"):
        add(name)
    queue, job = ask(tmp_path, RemoteTarget(on="ray"), sizes=(8, 64, 512))
    ended = until(lambda: client.watch(queue, job.id), lambda job: not job.active)
    assert [machine.state for machine in ended.machines] == ["finished"] * 2
    rows = client.load_job_rows(queue, ended)
    assert {row.machine_id for row in rows} == {machine.own_id for machine in ended.machines}
    assert len(rows) == 2 * 2 * 3


def test_a_node_works_with_what_its_owner_set_and_not_with_what_ray_set(add, tmp_path, monkeypatch):
    """Threads, devices and processors of our process are those that the node's Ray was started with."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/tell.py").write_text(
        "import json, os\nprint(json.dumps({**os.environ, 'processors': sorted(os.sched_getaffinity(0))}))\ninput()\n"
    )
    there = {"PYTHONPATH": str(tmp_path / "modules")}
    add("one", **there)
    add("two", OMP_NUM_THREADS="3", CUDA_VISIBLE_DEVICES="1", **there)
    said = {}
    with RayMachines("ray", "tell") as machines:
        for node in machines.find():
            machines.start(node)
        until(
            lambda: [said.update({node: lines}) for node, lines in machines.read(0.5) if lines],
            lambda _: len(said) == 2,
        )
    seen = {entry["CROSSOVER_MACHINE"]: entry for lines in said.values() for entry in map(json.loads, lines)}
    one, two = seen["one"], seen["two"]
    assert (one.get("OMP_NUM_THREADS"), one.get("CUDA_VISIBLE_DEVICES")) == (None, None)
    assert (two["OMP_NUM_THREADS"], two["CUDA_VISIBLE_DEVICES"]) == ("3", "1")
    for entry in (one, two):
        assert entry["processors"] == sorted(os.sched_getaffinity(0))
        assert [name for name in entry if name.startswith("RAY_") and name != "RAY_ADDRESS"] == []


def test_without_a_cluster_a_sentence_says_so(monkeypatch, tmp_path):
    for name, value in nodes.surroundings(tmp_path / "asker").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    queue, job = ask(tmp_path)
    ended = until(lambda: client.watch(queue, job.id), lambda job: not job.active)
    assert (ended.state, ended.message.startswith("No Ray cluster answers at auto: ")) == ("failed", True)
