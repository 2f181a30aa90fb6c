"""The driver of a cluster, with machines that only say what they do."""

import dataclasses
import itertools
import json

import pytest

from core.jobs import client, cluster, process, recovery
from core.jobs.cluster_node import NodeFacts, Report, Request, pack_rows, unpack_rows
from core.jobs.job import RemoteTarget
from core.results import environment
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

ASKED = sweep(sizes=(8, 16, 32, 64))
HERE = environment.read_environment()
DEVICES = {"cpu": "Test CPU"}
RUNS = itertools.count(1)
EVERYWHERE, SHARED = RemoteTarget(on="ray"), RemoteTarget(on="ray", spread="shared")


def facts(name, **changes):
    known = {"cpu": "Test CPU", "threads": 2, "torch_version": HERE.torch_version, "devices": DEVICES}
    return NodeFacts(**{"host": name, "name": name, "machine_id": "a" * 12, **known, **changes})


class Cluster:
    """Machines that measure at once what they are asked, unless a script says something else of a request.

    Attributes:
        nodes: facts of each machine that is there, by name.
        asked: what each was asked, in order.
        script: called with a machine and its request; may return the lines that it says, None for its loss.
    """

    def __init__(self, *nodes, script=None):
        self.nodes = {each.host: each for each in nodes}
        self.asked, self.script, self.stopped = [], script or (lambda *_: ...), []
        self._said = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def find(self):
        return set(self.nodes)

    def start(self, node):
        self._said.append((node, [line(Report(machine=self.nodes[node]))]))

    def ask(self, node, text):
        request = Request(**json.loads(text))
        self.asked.append((node, request))
        said = self.script(node, request)
        self._said.append((node, self.answer(node, request) if said is ... else said))

    def answer(self, node, request):
        known = {row.experiment_id for row in unpack_rows(request.rows)}
        asked = request.question
        points = [asked] if request.sweep is None else [asked.experiment(point) for point in asked.points]
        rows = [row for each in points if each.id not in known for row in measured(each, self.nodes[node])]
        return [line(Report(rows=pack_rows(rows))), line(Report(state="finished", is_complete=True))]

    def read(self, timeout_s):
        said, self._said = self._said, []
        return said

    def stop(self, node):
        self.stopped.append(node)


def line(report):
    return json.dumps(dataclasses.asdict(report))


def measured(experiment, about):
    return scripted_worker.timed(experiment, f"{next(RUNS):012x}", machine_id=about.machine_id)


@pytest.fixture
def drive(queue, store, monkeypatch):
    """Has the sweep measured by machines; the job, ended."""
    monkeypatch.setattr(cluster, "AGAIN_S", 0.0)

    def serve(machines, elsewhere=SHARED, asked=ASKED, **choices):
        monkeypatch.setattr(cluster, "connect", lambda on: machines)
        job = queue.submit(asked, store, elsewhere=elsewhere, **choices)
        cluster.serve(queue)
        return queue.job(job.id)

    return serve


def sizes_of(store):
    return sorted((row.hidden_size, row.contender) for row in store.trials())


ONCE = sorted((size, contender) for size in (8, 16, 32, 64) for contender in ("cpu@1", "cpu"))


def test_machines_of_one_kind_share_the_points_and_each_is_measured_once(drive, queue, store):
    machines = Cluster(facts("one"), facts("two"))
    ended = drive(machines)
    assert (ended.state, ended.complete, ended.message) == ("finished", True, "")
    assert {machine.host: (machine.state, machine.done) for machine in ended.machines} == {
        "one": ("finished", 4),
        "two": ("finished", 4),
    }
    assert {node for node, _ in machines.asked} == {"one", "two"}
    assert sizes_of(store) == ONCE
    assert {row.machine_id for row in store.trials()} == {"a" * 12}
    assert len(client.load_job_rows(queue, ended)) == len(ONCE)
    assert not queue.driver_file.is_served


def test_two_machines_that_were_given_the_same_name_are_told_apart(drive):
    machines = Cluster(facts("one"), facts("two"))
    machines.nodes["two"] = facts("one")
    ended = drive(machines, EVERYWHERE)
    assert [machine.host for machine in ended.machines] == ["one", "one-two"]


def test_machines_of_two_kinds_each_measure_all_points(drive, store):
    drive(Cluster(facts("one"), facts("two", machine_id="b" * 12)))
    assert sizes_of(store) == sorted(2 * ONCE)


def test_every_machine_measures_the_whole_sweep_under_a_name_of_its_own(drive, store):
    machines = Cluster(facts("one"), facts("two"))
    ended = drive(machines, EVERYWHERE)
    assert [request.sweep is not None for _, request in machines.asked] == [True, True]
    own_ids = {machine.own_id for machine in ended.machines}
    assert (len(own_ids), {row.machine_id for row in store.trials()}) == (2, own_ids)


@pytest.mark.parametrize("elsewhere", [SHARED, EVERYWHERE])
def test_what_the_store_has_is_not_measured_again_unless_it_shall_be(drive, store, elsewhere):
    drive(Cluster(facts("one")), elsewhere)
    again = Cluster(facts("one"))
    assert drive(again, elsewhere).complete
    assert [len(unpack_rows(request.rows)) for _, request in again.asked if request.sweep] in ([], [len(ONCE)])
    assert sizes_of(store) == ONCE
    drive(Cluster(facts("one")), elsewhere, fresh=True)
    assert sizes_of(store) == sorted(2 * ONCE)


def test_a_point_that_was_lost_with_its_machine_is_measured_by_another(drive, store):
    lost = []

    def lose_first(node, request):
        if node == "one" and not lost:
            lost.append(machines.nodes.pop("one"))
            return None
        return ...

    machines = Cluster(facts("one"), facts("two"), script=lose_first)
    ended = drive(machines)
    assert (ended.state, ended.complete) == ("finished", True)
    assert {machine.host: machine.state for machine in ended.machines} == {"one": "failed", "two": "finished"}
    assert sizes_of(store) == ONCE


def test_a_machine_that_comes_while_others_measure_gets_work(drive, store):
    def add_second(node, request):
        machines.nodes.setdefault("two", facts("two"))
        return ...

    machines = Cluster(facts("one"), script=add_second)
    drive(machines)
    assert {node for node, _ in machines.asked} == {"one", "two"}
    assert sizes_of(store) == ONCE


def test_a_point_that_takes_its_machine_along_every_time_is_given_up(drive, store):
    machines = Cluster(
        facts("one"), script=lambda _, request: None if request.question.point.hidden_size == 16 else ...
    )
    ended = drive(machines)
    assert f"Hidden size 16: {cluster.LOST_OFTEN}" in ended.message
    assert not ended.complete
    assert sizes_of(store) == [entry for entry in ONCE if entry[0] != 16]


def test_a_sweep_whose_process_is_killed_is_measured_point_by_point(drive, store):
    crashed = line(Report(state="crashed", message="The measuring process was killed."))

    def kill_at_16(_, request):
        large = request.sweep is not None or request.question.point.hidden_size == 16
        return [crashed] if large else ...

    ended = drive(Cluster(facts("one"), script=kill_at_16), EVERYWHERE)
    assert "Hidden size 16: The measuring process was killed. The system may have run out of memory" in ended.message
    assert sizes_of(store) == [entry for entry in ONCE if entry[0] != 16]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"devices": {}}, "The device cpu is not on this machine, which has "),
        ({"protocol": 0}, "uses protocol 0, but this one uses"),
    ],
)
def test_a_machine_that_cannot_measure_it_says_so_and_the_others_go_on(drive, store, changes, sentence):
    ended = drive(Cluster(facts("one"), facts("two", **{"machine_id": "b" * 12, **changes})))
    assert ended.state == "finished"
    assert "two: " in ended.message
    assert sentence in ended.message
    assert sizes_of(store) == ONCE


def test_a_machine_that_says_nothing_of_ours_is_left_and_another_process_started(drive, store):
    said = iter([["[1, 2"], ...])
    machines = Cluster(facts("one"), script=lambda *_: next(said, ...))
    assert drive(machines).complete
    assert machines.stopped == ["one"]
    assert sizes_of(store) == ONCE


def test_where_our_process_never_starts_a_sentence_says_what_to_look_at(drive, store):
    machines = Cluster(facts("one"))
    machines.start = lambda node: machines._said.append((node, None))
    ended = drive(machines)
    assert (ended.state, "CROSSOVER_HOME names the folder" in ended.message) == ("failed", True)


def test_rows_that_the_store_refuses_are_brought_again_and_a_sentence_says_so_meanwhile(
    drive, queue, store, monkeypatch
):
    add_all, refusals, phases = Store.add_all, iter(range(3)), []

    def refuse(self, table, **choices):
        if self.folder == store.folder and next(refusals, None) is not None:
            raise recovery.StoreError("The store does not answer.")
        return add_all(self, table, **choices)

    report = cluster.ClusterSweep._report

    def note(self):
        report(self)
        phases.append(self.job.progress.phase)

    monkeypatch.setattr(Store, "add_all", refuse)
    monkeypatch.setattr(cluster, "STORE_AGAIN_S", 0.0)
    monkeypatch.setattr(cluster.ClusterSweep, "_report", note)
    ended = drive(Cluster(facts("one")))
    assert (ended.state, ended.unsaved) == ("finished", False)
    assert any("The store does not answer." in phase for phase in phases)
    assert sizes_of(store) == ONCE


def test_a_job_that_is_stopped_keeps_what_came_by_then(drive, queue, store):
    def stop(_, request):
        queue.request_stop(queue.active()[0].id)
        return ...

    ended = drive(Cluster(facts("one"), script=stop))
    assert (ended.state, ended.message) == ("stopped", "The machines were stopped; 1 run saved.")
    assert len(sizes_of(store)) == 2


def test_a_search_measures_the_sizes_that_it_wants(drive, store):
    axis = dataclasses.replace(ASKED.axes[0], values=tuple(2**power for power in range(3, 11)))
    ended = drive(Cluster(facts("one"), facts("two")), asked=sweep(axes=(axis,), adaptive=True))
    assert ended.complete
    sizes = [size for size, contender in sizes_of(store) if contender == "cpu"]
    assert {64, 128} <= set(sizes)
    assert len(sizes) == len(set(sizes))


def test_a_cluster_without_machines_is_not_waited_for_for_ever(drive, monkeypatch):
    monkeypatch.setattr(cluster, "ABSENT_S", 0.0)
    ended = drive(Cluster())
    assert (ended.state, ended.message) == ("failed", cluster.GONE)


def test_what_is_measured_here_does_not_wait_for_a_cluster(queue, store):
    there = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    here = queue.submit(ASKED, store)
    assert here.id != there.id
    assert (there.place, here.place) == (1, 1)
    assert queue.claim(process.current_process()).id == here.id
    assert queue.claim(process.current_process()) is None
    assert queue.claim(process.current_process(), elsewhere=True).id == there.id


def test_the_same_sweep_of_the_same_cluster_is_joined(queue, store):
    there = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    assert queue.submit(ASKED, store, elsewhere=EVERYWHERE).id == there.id
    assert queue.submit(ASKED, store, elsewhere=SHARED).id != there.id
    assert queue.job(there.id).elsewhere == EVERYWHERE


def test_a_job_whose_driver_was_killed_says_so_and_brings_the_rows_that_waited(queue, store, dead):
    job = queue.submit(ASKED, store, elsewhere=SHARED)
    queue.claim(dead, elsewhere=True)
    queue.files(job.id).keep_unsaved(measured(ASKED.experiment(ASKED.points[0]), facts("one")))
    ended = queue.job(job.id)
    assert (ended.state, ended.message) == ("crashed", recovery.DRIVER_KILLED)
    assert len(store.trials()) == 2


def test_machines_of_a_cluster_are_listed_and_one_that_does_not_answer_says_so(monkeypatch):
    machines = Cluster(facts("one"), facts("two"))
    start = machines.start
    machines.start = lambda node: start(node) if node == "one" else None
    found = cluster.list_machines(machines, timeout_s=0.05)
    assert [(machine.host, machine.devices) for machine in found] == [("node-two", ()), ("one", ("Test CPU",))]
    assert "did not answer within" in found[0].message
