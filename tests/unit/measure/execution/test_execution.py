"""Lanes on the CPU: the same losses, graphs and their replays, batches and micro-batches."""

import dataclasses

import pytest
import torch

from core.measure import datasets, networks
from core.measure.execution import WARM_UPS
from core.measure.timer import Timer
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import PLAIN, Lane
from tests.fakes import FakeClock, FakeDevice, FakeRecorder
from tests.unit.measure.execution.trained import CNN, CPU, POINT, graph, losses, started


@pytest.mark.parametrize("words", ["foreach", "fused", "micro5", "graph", "graph4", "graph10+fused+micro4"])
@pytest.mark.parametrize("data_path", ["resident", "per_batch", "loader"])
def test_lanes_of_the_same_mathematics_give_the_same_losses(data, words, data_path):
    point = Point(**{**vars(POINT), "data_path": data_path})
    lane = Lane.parse(words.split("+"))
    mine = started(data, lane, point=point, recorder=FakeRecorder())
    plain = started(data)
    assert losses(mine, 33) == pytest.approx(losses(plain, 33), rel=1e-5)
    for a, b in zip(mine.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_pixels_stored_together_train_the_same(data):
    mine = started(data, Lane(memory_format="channels_last"), point=CNN)
    kernel = next(parameter for parameter in mine.network.parameters() if parameter.dim() == 4)
    assert kernel.is_contiguous(memory_format=torch.channels_last)
    assert losses(mine, 6) == pytest.approx(losses(started(data, point=CNN), 6), rel=1e-4)


@pytest.mark.parametrize("words", ["", "fused", "micro5", "graph4"])
def test_a_training_in_float64_begins_with_the_weights_of_float32_and_has_losses_in_float64(data, words):
    point = dataclasses.replace(POINT, dtype="float64")
    longer = datasets.load_point_data(point)
    mine = started(longer, Lane.parse(filter(None, [words])), point=point, recorder=FakeRecorder())
    plain = started(data)
    for a, b in zip(mine.weights(), plain.weights(), strict=True):
        assert a.dtype == torch.float64
        assert torch.equal(a.float(), b)
    mine.advance(9)
    assert {loss.dtype for loss in mine._losses} == {torch.float64}
    assert mine.read_losses() == pytest.approx(losses(plain, 9), rel=1e-5)


@pytest.mark.parametrize("words", ["channels_last", "micro1", "graph2", "channels_last+micro2+graph2"])
def test_a_residual_network_trains_the_same_in_every_lane_and_in_pieces_of_its_batch(data, words):
    point = Point(samples=60, model="resnet", depth=1, batch_size=4)
    mine = started(data, Lane.parse(words.split("+")), point=point, recorder=FakeRecorder())
    assert losses(mine, 4) == pytest.approx(losses(started(data, point=point), 4), rel=1e-4)


def test_bfloat16_is_another_training_with_weights_that_stay_fp32(data):
    mine = started(data, Lane(precision="bf16"))
    found, plain = losses(mine, 20), losses(started(data), 20)
    assert found != plain
    assert found == pytest.approx(plain, rel=0.05)
    assert {weight.dtype for weight in mine.weights()} == {torch.float32}


@pytest.mark.parametrize("words", ["fp16", "fp16+micro5"])
def test_float16_scales_the_loss_and_skips_a_step_whose_gradients_overflow(data, words):
    mine = started(data, Lane.parse(words.split("+")))
    assert losses(mine, 20) == pytest.approx(losses(started(data), 20), rel=0.05)
    assert {weight.dtype for weight in mine.weights()} == {torch.float32}
    before, scale = mine.weights(), mine.parts.scaler.get_scale()
    assert scale > 1
    mine.step((data.train.samples[:20] * 1e30, data.train.labels[:20]))
    assert all(torch.equal(a, b) for a, b in zip(before, mine.weights(), strict=True))
    assert mine.parts.scaler.get_scale() < scale


def test_the_update_in_float16_is_the_fused_one_which_never_asks_the_device_whether_to_skip(data):
    assert started(data, Lane(precision="fp16")).optimizer.defaults["fused"]
    assert not started(data, Lane(precision="bf16")).optimizer.defaults["fused"]


def test_micro_batches_add_up_to_the_gradient_of_the_batch(data):
    batch = data.train.samples[:20], data.train.labels[:20]
    gradients = []
    for lane in (PLAIN, Lane(micro_batch=5)):
        training = started(data, lane)
        training.step(batch)
        gradients.append([parameter.grad for parameter in training.network.parameters()])
    for whole, pieces in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, pieces)


def test_a_graph_is_warmed_up_before_it_is_recorded_and_that_changes_no_weight(data):
    recorder = FakeRecorder()
    training = started(data, graph(4), recorder=recorder)
    assert recorder.log == (["warm up"] * WARM_UPS + ["record"]) * 2  # four steps, and one for what is left over
    for mine, plain in zip(training.weights(), started(data).weights(), strict=True):
        assert torch.equal(mine, plain)


@pytest.mark.parametrize(("steps", "replays"), [(4, 1), (8, 2), (3, 3), (10, 4), (1, 1)])
def test_steps_that_fill_no_call_are_trained_one_by_one_in_the_same_lane(data, steps, replays):
    recorder = FakeRecorder()
    training = started(data, graph(4), recorder=recorder)
    recorder.log.clear()
    training.advance(steps)
    assert recorder.log == ["replay"] * replays
    assert training.steps == steps
    assert training.read_losses() == pytest.approx(losses(started(data), steps), rel=1e-5)


def test_a_graph_goes_on_from_weights_that_were_put_back_and_from_any_place_in_the_order(data):
    whole = started(data)
    whole.advance(12)
    resumed = started(data, graph(4), steps=12, recorder=FakeRecorder())
    resumed.set_weights(whole.weights())
    whole.read_losses()
    expected = losses(whole, 9)
    assert losses(resumed, 8, 1) == pytest.approx(expected, rel=1e-5)

    resumed.set_weights(started(data).weights())
    resumed.rewind(datasets.make_feed(POINT, data, data.train, CPU), 0)
    assert losses(resumed, 20) == pytest.approx(losses(started(data), 20), rel=1e-5)


def test_losses_of_a_replay_are_kept_when_the_next_one_writes_over_them(data):
    training = started(data, graph(2), recorder=FakeRecorder())
    found = losses(training, 6)
    assert len(set(found)) == 6


@pytest.mark.parametrize("words", ["", "fused", "micro5", "bf16", "graph", "graph4"])
def test_no_lane_reads_from_the_device_while_it_trains(data, words, monkeypatch):
    """Each of these waits for an accelerator, which would put a drain into every step."""
    lane = Lane.parse(filter(None, words.split("+")))
    training = started(data, lane, recorder=FakeRecorder())
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_, name=name: pytest.fail(f"Tensor.{name} synchronizes"))
    training.advance(33)


def test_a_block_of_replays_is_drained_before_and_after_it_and_nowhere_else(data):
    clock = FakeClock()
    device = FakeDevice(clock=clock, launch_s=1e-5)
    training = started(data, graph(4), recorder=FakeRecorder(device=device))
    reading = Timer(device=device, clock=clock).time(lambda: training.advance(20))
    assert device.log == ["drain", *["work"] * 5, "drain"]
    assert reading.seconds == pytest.approx(5e-3 + 1e-5)


def test_work_that_is_rehearsed_loads_its_batch_once_and_keeps_no_loss(data):
    recorder = FakeRecorder()
    training = started(data, graph(4), recorder=recorder)
    work = training.rehearsal()
    recorder.log.clear()
    work()
    work()
    assert recorder.log == ["replay", "replay"]
    assert training.read_losses() == []


def test_a_graph_that_was_not_prepared_says_so(data):
    feed = datasets.make_feed(POINT, data, data.train, CPU)
    training = Training(
        networks.build(POINT.network, seed=0), feed, learning_rate=0.1, lane=graph(2), recorder=FakeRecorder()
    )
    with pytest.raises(RuntimeError, match="prepared with an example"):
        training.advance(2)


@pytest.mark.parametrize("words", ["", "micro5", "graph", "graph4", "graph10"])
@pytest.mark.parametrize("data_path", ["resident", "per_batch"])
def test_work_that_is_rehearsed_trains_the_next_batches_of_the_order(data, words, data_path):
    lane = Lane.parse(filter(None, words.split("+")))
    point = Point(**{**vars(POINT), "data_path": data_path})
    mine, plain = started(data, lane, point=point, recorder=FakeRecorder()), started(data)
    mine.advance(lane.steps_per_call)
    plain.advance(lane.steps_per_call)
    mine.rehearsal()()
    plain.advance(lane.steps_per_call)
    for a, b in zip(mine.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
