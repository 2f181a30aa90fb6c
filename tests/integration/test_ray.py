"""A real Ray cluster of processes on this machine, whose nodes have jobs, a lock and a name each."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from core.errors import JobError
from core.files.project import PROJECT
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.jobs.shared import asking, board, on_ray
from core.jobs.shared.board import Question
from core.jobs.shared.on_ray import RayNodes
from core.results.store import Store
from tests import nodes
from tests.integration import scripted_node
from tests.integration.following import until
from tests.integration.scripted_worker import UNTIL_RELEASED, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install -r requirements-cluster.txt",
    ),
]

SIZES = tuple(range(8, 8 + 16))
MACHINE = {"num_cpus": 0, "resources": {"crossover_machine": 1}}
"""A node that starts no process before it is given a task; ours take no processor of Ray's."""

QUIET = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""A head with nothing that shows logs or asks for further machines."""


@contextlib.contextmanager
def lab(folder, variables):
    """A head that measures as well, and what adds a node; nothing of them outlives it."""
    from ray.cluster_utils import Cluster

    (folder / "modules").mkdir(parents=True)
    variables.setattr(board, "PRESENT_S", scripted_node.PRESENT_S)
    variables.setenv("PYTHONPATH", str(folder / "modules"))
    for name, value in nodes.surroundings(folder / "head").items():
        variables.setenv(name, value)
    made = Cluster(initialize_head=True, head_node_args={**MACHINE, **QUIET})
    variables.setenv("RAY_ADDRESS", made.address)
    names = ["head"]

    def add(name, **own):
        names.append(name)
        return made.add_node(**MACHINE, env_vars={**nodes.surroundings(folder / name), **own})

    made.add = add
    yield made
    made.shutdown()
    for name in names:
        nodes.kill_machine(folder / name)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    with lab(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="class")
def two(tmp_path_factory):
    """The folder of a cluster of two machines: the head, and one whose owner has set something."""
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as variables, lab(folder, variables) as made:
        made.add("one", OMP_NUM_THREADS="3", CUDA_VISIBLE_DEVICES="1")
        yield folder


def ask(folder, question):
    """Have a question answered by the nodes of the cluster, as `sweep --on ray` does."""
    command = ["worker", "--store", str(folder), "--question", question.id]
    with RayNodes("ray", command, module=nodes.MODULE) as machines:
        return asking.follow(board.board_of(folder), question, lambda _: None, machines.keep)


def ask_alone(folder):
    """What an asker does in a process of its own."""
    ask(Path(folder), asked_of())


def asked_of(**changes):
    return Question(sweep=sweep(**{"sizes": SIZES, **changes}), spread="shared")


def measured(folder):
    """Each size and contender as often as it was measured to the end."""
    return sorted((row.hidden_size, row.contender) for row in Store(folder).trials() if row.outcome == "timed")


ONCE = sorted((size, contender) for size in SIZES for contender in ("cpu@1", "cpu"))


@pytest.mark.timeout(400)
def test_every_point_is_measured_once_though_a_node_is_killed_and_one_is_added(cluster, tmp_path):
    for name in ("one", "two"):
        cluster.add(name)
    folder, answered = tmp_path / "store", []
    asks = threading.Thread(target=lambda: answered.append(ask(folder, asked_of())))
    asks.start()
    until(lambda: measured(folder), lambda found: len(found) >= 6)
    nodes.kill_machine(tmp_path / "one")
    cluster.add("three")
    asks.join(300)
    [seen] = answered
    assert {member.state for member in seen.ended.values()} == {"finished"}
    assert measured(folder) == ONCE


class TestTwoMachines:
    @pytest.mark.timeout(400)
    def test_a_worker_and_then_the_asker_are_killed_and_the_same_question_goes_on_and_can_be_stopped(self, two):
        folder, question = two / "store", asked_of()
        command = f"from tests.integration import test_ray as t; t.ask_alone({str(folder)!r})"
        asker = subprocess.Popen([sys.executable, "-c", command], cwd=PROJECT)
        until(lambda: measured(folder), lambda found: len(found) >= 4)
        [worker] = workers(two / "one")
        worker.kill()
        before = len(measured(folder))
        until(lambda: measured(folder), lambda found: len(found) >= min(before + 8, len(ONCE)))
        asker.kill()
        asker.wait()
        seen = ask(folder, question)
        assert {member.state for member in seen.ended.values()} == {"finished"}
        assert measured(folder) == ONCE

        endless = asked_of(script=UNTIL_RELEASED)
        at = board.board_of(folder)
        asks = threading.Thread(target=ask, args=(folder, endless))
        asks.start()
        busy = until(
            lambda: [member for member in at.members() if member.state == "measuring"], lambda all_: len(all_) == 2
        )
        assert {member.question for member in busy} == {endless.id}
        at.close(endless.id)
        asks.join(300)
        assert {member.state for member in at.ends(endless.id).values()} == {"stopped"}
        assert [job for name in ("head", "one") for job in Queue(two / name / "jobs").active()] == []
        assert [process for name in ("head", "one") for process in workers(two / name)] == []

    def test_a_node_works_with_what_its_owner_set_and_not_with_what_ray_set(self, two):
        """Threads, devices and processors of the worker are those that the node's Ray was started with."""
        (two / "modules/tell.py").write_text(
            "import json, os, pathlib\n"
            "folder = pathlib.Path(os.environ['CROSSOVER_JOBS']).parent\n"
            "folder.mkdir(exist_ok=True)\n"
            "seen = {**os.environ, 'processors': sorted(os.sched_getaffinity(0))}\n"
            "(folder / 'draft').write_text(json.dumps(seen))\n"
            "(folder / 'draft').rename(folder / 'seen')\n"
        )
        with RayNodes("ray", [], module="tell") as machines:
            head, one = (
                json.loads(until(lambda path=path: read(path), bool)) for path in (two / "head/seen", two / "one/seen")
            )
            machines.keep()
            assert machines.machines == 2
        assert (head.get("OMP_NUM_THREADS"), head.get("CUDA_VISIBLE_DEVICES")) == (None, None)
        assert (one["OMP_NUM_THREADS"], one["CUDA_VISIBLE_DEVICES"]) == ("3", "1")
        for seen in (head, one):
            assert seen["processors"] == sorted(os.sched_getaffinity(0))
            assert [name for name in seen if name.startswith("RAY_") and name != "RAY_ADDRESS"] == []


def workers(folder):
    """Processes of ours that Ray has started on a machine."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = nodes.MODULE in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
            if ours and process.environ().get(JOBS_VARIABLE) == str(folder / "jobs"):
                yield process


def read(path):
    return path.read_text() if path.exists() else ""


def test_a_connection_that_is_lost_is_made_anew_and_a_cluster_that_is_gone_is_told_in_one_sentence(
    cluster, monkeypatch
):
    monkeypatch.setattr(on_ray, "AGAIN_S", 0.0)
    monkeypatch.setitem(on_ray._SOON, "RAY_gcs_rpc_server_reconnect_timeout_s", "2")
    with RayNodes("ray", [], module="platform") as machines:
        lost = machines._process
        lost.kill()
        until(lambda: machines.keep() or machines._process, lambda now: now is not lost)
        assert machines._process.stdout.readline() == "ready: 1\n"
        machines.keep()
        monkeypatch.setattr(on_ray, "GONE_S", 0.0)
        cluster.shutdown()
        with pytest.raises(JobError, match=r"The Ray cluster at auto is gone\..* the same command goes on\."):
            until(machines.keep, lambda _: False)


def test_without_a_cluster_a_sentence_says_so(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(JobError, match="No Ray cluster answers at auto"), RayNodes("ray", []):
        pass
