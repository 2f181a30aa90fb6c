"""A backend that nobody here wrote, asynchronous and lazy, is measured as any accelerator: PyTorch/XLA's CPU device.

Opt-in, in an environment of its own: `tests/xla/requirements.txt` says how.
"""

import dataclasses
import os
import statistics
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch_xla", reason="torch_xla is not installed: tests/xla/requirements.txt has its environment")

import torch
import torch_xla

from core.errors import DeviceUnavailable
from core.files.project import PROJECT
from core.measure import devices
from core.measure.contender import MeasuredContender
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store
from tests.xla import bridge

bridge.connect()

pytestmark = [pytest.mark.xla, pytest.mark.slow, pytest.mark.filterwarnings("ignore:Please use the new API settings")]

XLA = Contender(device="other:0")
CPU = Contender(threads=1)
POINT = Point(dataset="disc", model="doubling-mlp", depth=2, batch_size=100, epochs=1, samples=1_000, shuffle=False)
PAIRS = 5


def work() -> torch.Tensor:
    """A product that is recorded at once and takes tenths of a second to be run."""
    matrix = torch.ones(1024, 1024, device="xla:0") / 1024
    result = matrix
    for _ in range(20):
        result = result @ matrix
    return result.sum()


def seconds(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def of_both(point: Point = POINT, pairs: int = PAIRS):
    experiment = Experiment(point=point, contenders=(CPU, XLA), budget_s=120, pairs=pairs)
    return measure(experiment, hooks=Hooks())


def test_it_is_seen_as_a_device_that_pytorch_names():
    assert [info.device for info in devices.discover()] == ["cpu", "other:0"]
    assert devices.find("other:0").name == "xla: XLA on the CPU"


def test_the_drain_leaves_nothing_to_be_waited_for():
    work().item()  # compiled
    value = work()
    drained_s = seconds(devices.open_device("other:0").synchronize)
    assert seconds(value.item) < 0.1 * drained_s


def test_its_own_way_of_waiting_returns_before_the_work_is_done():
    work().item()
    value = work()
    early_s = seconds(lambda: torch_xla.sync(wait=True))
    assert seconds(value.item) > early_s


def test_with_that_way_of_waiting_it_would_be_refused(monkeypatch):
    device = devices.open_device("other:0")
    devices.check_synchronization(device, device.torch)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _=None: torch_xla.sync(wait=True))
    with pytest.raises(DeviceUnavailable, match="of the work was left"):
        devices.check_synchronization(device, device.torch)


@pytest.mark.parametrize("data_path", ["resident", "per_batch"])
def test_it_learns_what_the_cpu_learns_wherever_the_data_are(data_path):
    cpu, xla = of_both(dataclasses.replace(POINT, data_path=data_path))
    assert xla.outcome == cpu.outcome == "timed"
    assert xla.loss == pytest.approx(cpu.loss, rel=1e-4)


def test_its_blocks_are_timed_to_their_end_and_not_to_their_queueing():
    _, xla = of_both()
    blocks = zip(xla.block_begin_ns, xla.block_end_ns, xla.block_steps, strict=True)
    step_s = statistics.median((end - begin) / 1e9 / steps for begin, end, steps in blocks)
    started = bridge_training_step_s()
    assert step_s > 0.5 * started


def bridge_training_step_s() -> float:
    """Seconds of a step of a training of that size, by hand: recorded, run, and read."""
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).to("xla:0")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    samples, labels = torch.randn(100, 2).to("xla:0"), torch.zeros(100, dtype=torch.int64).to("xla:0")

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(samples), labels).backward()
        optimizer.step()

    for _ in range(3):
        step()
    bridge.drain()
    return seconds(lambda: ([step() for _ in range(50)], bridge.drain())) / 50


def test_a_whole_training_is_examined_with_the_weights_that_lie_there():
    cpu, xla = of_both(pairs=0)
    assert xla.outcome == "completed"
    assert xla.confusion == cpu.confusion


def test_what_does_not_fit_into_its_memory_ends_that_contender_alone(monkeypatch):
    """XLA says so when the work is run, which may be long after it was asked for."""
    build = MeasuredContender._build

    def too_much(measured: MeasuredContender) -> None:
        build(measured)
        if not measured.contender.on_host:
            huge = torch.zeros(2**40, device="xla:0")
            bridge.drain()
            huge[0].item()

    monkeypatch.setattr(MeasuredContender, "_build", too_much)
    assert [(row.contender, row.outcome) for row in of_both()] == [("cpu@1", "timed"), ("other:0", "out_of_memory")]


def test_the_worker_measures_it_and_the_store_keeps_its_row(tmp_path):
    settings = "--dataset disc --model doubling-mlp --depth 2 --batch-size 100 --samples 1000 --epochs 1 --budget 120"
    command = ["run", "--devices", "cpu@1,other:0", *settings.split(), "--store", str(tmp_path / "store")]
    paths = (str(PROJECT / "tests/xla/site"), str(PROJECT))
    done = subprocess.run(
        [sys.executable, "-m", "core", *command],
        cwd=PROJECT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "CROSSOVER_JOBS": str(tmp_path / "jobs"),
            "CROSSOVER_LOCK": str(tmp_path / "lock"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = {row.device: row.device_kind for row in Store(tmp_path / "store").trials()}
    assert kinds == {"cpu": "cpu", "other:0": "other"}
