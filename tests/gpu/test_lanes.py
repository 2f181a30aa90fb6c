"""What only a real accelerator can show of lanes: graphs, fused updates, TF32, bfloat16, and that nothing waits."""

import pytest
import torch

from core.answer import speedup
from core.measure import datasets, devices, networks
from core.measure.execution import RecordedSteps, Recorder, Step
from core.measure.training import Training
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from core.question.lanes import PLAIN, Lane
from core.results.schema import Trial
from tests.gpu.accelerators import ACCELERATOR_MARKS, waits

pytestmark = ACCELERATOR_MARKS

DISC = Point(dataset="disc", model="doubling-mlp", depth=8, batch_size=100, epochs=100, shuffle=False)
SIGNAL = Point(dataset="signal", samples=20_000, hidden_size=100, batch_size=32, epochs=2, learning_rate=0.01)
CNN = Point(dataset="digits", model="cnn", batch_size=64, epochs=10)

SAME = ("foreach", "fused", "graph", "graph10", "graph10+fused", "micro20", "graph10+micro20", "compiled", "compiled5")


def started(device: devices.Device, words: str, point: Point = DISC) -> Training:
    lane = Lane.parse(filter(None, words.split("+")))
    refusals = devices.find(str(device.torch)).refusals
    if missing := [kind for kind in lane.kinds if kind in refusals]:
        pytest.skip(refusals[missing[0]])
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=0)
    resident = data.train.to(device.torch)
    feed = datasets.make_feed(point, data, resident, device.torch)
    network = networks.build(point.network, 0).to(device.torch)
    training = Training(network, feed, learning_rate=point.learning_rate, lane=lane)
    size = point.batch_size
    training.prepare((resident.samples[:size], resident.labels[:size]), remainder=True)
    return training


def losses(training: Training, steps: int) -> list[float]:
    training.advance(steps)
    return training.read_losses()


@pytest.mark.parametrize("words", SAME)
@pytest.mark.parametrize("point", [DISC, Point(**{**vars(SIGNAL), "batch_size": 100})], ids=["disc", "signal"])
def test_lanes_of_the_same_mathematics_give_the_same_losses(device, words, point):
    plain, mine = losses(started(device, "", point), 33), losses(started(device, words, point), 33)
    assert mine == pytest.approx(plain, rel=speedup.TOLERANCE)


def test_images_stored_pixel_by_pixel_train_the_same(device):
    plain, mine = losses(started(device, "", CNN), 20), losses(started(device, "channels_last", CNN), 20)
    assert mine == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize(
    "words", ["", "foreach", "fused", "micro20", "bf16", "fp16", "tf32", "graph", "graph10", "graph10+bf16"]
)
def test_no_lane_waits_for_the_device_not_even_where_an_epoch_ends(device, words):
    """CUDA raises at every synchronizing call; 200 steps of ten an epoch cross twenty borders, in a new order each."""
    if device.torch.type != "cuda":
        pytest.skip("only CUDA can report hidden waits")
    training = started(device, words, Point(**{**vars(DISC), "shuffle": True}))
    training.advance(20)
    training.read_losses()
    device.synchronize()
    with waits("error"):
        training.advance(200)
    assert training.read_losses()[-1] < 1


@pytest.mark.parametrize("words", ["bf16", "fp16"])
def test_lower_precision_learns_what_fp32_does(device, words):
    assert losses(started(device, words), 33) == pytest.approx(losses(started(device, ""), 33), rel=0.05)


def test_timed_algorithms_of_convolutions_train_the_same(device):
    name = str(device.torch)
    if "benchmark" in devices.find(name).refusals:
        pytest.skip(devices.find(name).refusals["benchmark"])
    _, timed = compared(CNN, name, f"{name}+benchmark", pairs=3)
    assert timed.cudnn == "benchmark"
    assert speedup.check_lane(timed).difference < 1e-3


def test_recording_runs_nothing_and_keeps_the_weights(device):
    if device.torch.type != "cuda":
        pytest.skip("only CUDA and ROCm record graphs")
    network = networks.build(DISC.network, 0).to(device.torch)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    batch = torch.rand(100, 2, device=device.torch), torch.zeros(100, dtype=torch.int64, device=device.torch)
    recording = RecordedSteps(Step(network, learning_rate=0.1), Recorder(device.torch), batch, 3, None)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    recording.replay()
    device.synchronize()
    assert not all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert bool((recording.losses > 0).all())


def test_tf32_is_on_for_its_own_lane_alone(device):
    name = str(device.torch)
    if "tf32" in devices.find(name).refusals:
        pytest.skip(devices.find(name).refusals["tf32"])
    point = Point(dataset="signal", hidden_size=1_024, batch_size=1_024, epochs=2, learning_rate=0.01)
    plain, rounded = compared(point, name, f"{name}+tf32", pairs=3)
    assert (plain.precision, rounded.precision) == ("fp32", "tf32")
    assert speedup.check_lane(rounded).difference > 1e-7
    assert plain.loss[0] == pytest.approx(rounded.reference_loss[0], rel=1e-6)


def test_a_graph_takes_the_launches_away(device):
    """Most of a small eager step is the host's launching; a replay has one."""
    name = str(device.torch)
    if "graph" in devices.find(name).refusals:
        pytest.skip(devices.find(name).refusals["graph"])
    eager, graph = compared(DISC, name, f"{name}+graph10")
    assert eager.outcome == graph.outcome == "completed"
    assert graph.loss == pytest.approx(eager.loss, rel=1e-3)
    assert speedup.check_lane(graph).within
    assert sorted(graph.step_s)[len(graph.step_s) // 2] < sorted(eager.step_s)[len(eager.step_s) // 2]
    assert len(graph.busy_step_s) > 0
    assert graph.startup_compile_s > 0


def compared(point: Point, *contenders: str, pairs: int = 0) -> list[Trial]:
    asked = Experiment(point=point, contenders=tuple(map(Contender.parse, contenders)), budget_s=60, pairs=pairs)
    return measure(asked, hooks=Hooks())


def test_the_plain_lane_is_held_against_nothing(device):
    (row,) = compared(DISC, str(device.torch), pairs=2)
    assert (Lane.from_row(row), row.lane_loss) == (PLAIN, ())
