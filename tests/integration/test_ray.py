"""A real Ray cluster of processes on this machine, whose nodes have jobs, a lock and a name each."""

import importlib.util
import os
import threading

import pytest

from core.jobs.shared import asking, board
from core.jobs.shared.board import Question
from core.results.store import Store
from tests import nodes
from tests.integration import following
from tests.integration.following import until
from tests.integration.scripted_worker import sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install -r requirements-cluster.txt",
    ),
]

SIZES = tuple(range(8, 8 + 24))
MACHINE = {"num_cpus": 1, "resources": {"crossover_machine": 1}}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Three nodes start a dozen processes, which takes long on a machine with other things to do."""
    monkeypatch.setattr(following, "PATIENCE_S", 240.0)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A head that measures as well, and what adds a node; nothing of them outlives the test."""
    from ray.cluster_utils import Cluster

    for name, value in nodes.surroundings(tmp_path / "head").items():
        monkeypatch.setenv(name, value)
    made = Cluster(initialize_head=True, head_node_args={**MACHINE, "include_dashboard": False})
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    names = ["head"]

    def add(name):
        names.append(name)
        return made.add_node(**MACHINE, env_vars=nodes.surroundings(tmp_path / name))

    made.add = add
    yield made
    made.shutdown()
    for name in names:
        nodes.kill_machine(tmp_path / name)


@pytest.mark.timeout(400)
def test_every_point_is_measured_once_though_a_node_is_killed_and_one_is_added(cluster, tmp_path):
    from core.jobs.shared.on_ray import RayNodes

    for name in ("one", "two"):
        cluster.add(name)
    store = Store(tmp_path / "store")
    question = Question(sweep=sweep(sizes=SIZES), spread="shared")
    command = ["worker", "--store", str(store.folder), "--question", question.id]
    answered = []

    def ask():
        with RayNodes("ray", command, module=nodes.MODULE) as machines:
            at = board.board_of(store.folder)
            answered.append(asking.follow(at, question, lambda _: None, machines.keep))

    asks = threading.Thread(target=ask)
    asks.start()
    until(lambda: {row.hidden_size for row in store.trials()}, lambda sizes: len(sizes) >= 3)
    nodes.kill_machine(tmp_path / "one")
    cluster.add("three")
    asks.join(300)
    [seen] = answered
    assert {member.state for member in seen.ended.values()} == {"finished"}
    measured = sorted((row.hidden_size, row.contender) for row in store.trials() if row.outcome == "timed")
    assert measured == sorted((size, contender) for size in SIZES for contender in ("cpu@1", "cpu"))


def test_a_node_works_with_what_its_owner_set_and_not_with_what_ray_set(cluster, tmp_path, monkeypatch):
    """Threads and devices in the worker's environment are those that the node's Ray was started with."""
    from core.jobs.shared.on_ray import RayNodes

    out = tmp_path / "seen"
    (tmp_path / "tell.py").write_text(
        "import os, pathlib, sys\n"
        "names = ('OMP_NUM_THREADS', 'CUDA_VISIBLE_DEVICES', 'CROSSOVER_JOBS')\n"
        "said = [str(os.environ.get(name)) for name in names] + [str(len(os.sched_getaffinity(0)))]\n"
        "pathlib.Path(sys.argv[1]).write_text(' '.join(said))\n"
    )
    monkeypatch.setattr("core.jobs.shared.on_ray.PROJECT", tmp_path)
    with RayNodes("ray", [str(out)], module="tell") as machines:
        machines.keep()
        said = until(lambda: out.read_text() if out.exists() else "", bool).split()
    assert said[:2] == ["None", "None"]
    assert said[2] == str(tmp_path / "head" / "jobs")
    assert said[3] == str(len(os.sched_getaffinity(0)))


def test_without_a_cluster_a_sentence_says_so(monkeypatch):
    from core.errors import JobError
    from core.jobs.shared.on_ray import RayNodes

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(JobError, match="No Ray cluster answers at auto"), RayNodes("ray", []):
        pass
