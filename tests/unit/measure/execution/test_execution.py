"""Every lane trains the same steps on the same batches in the same order, and none waits for the device in a block."""

import contextlib
import dataclasses
import logging
import time
import warnings
from types import SimpleNamespace

import pytest
import torch

from core.measure import networks
from core.measure.data import batches, datasets
from core.measure.execution import compiled
from core.measure.execution.graph import WARM_UPS, CudaRecorder
from core.measure.readings.timer import Timer
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import PLAIN, Lane
from tests.fakes import FakeClock, FakeDevice, FakeRecorder

CPU = torch.device("cpu")
POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=20)
"""15 steps an epoch, of which no call of 2, 4 or 10 steps is a divisor."""

CNN = Point(samples=60, model="cnn", batch_size=20)


@pytest.fixture(scope="module")
def data():
    return datasets.load("digits", samples=POINT.samples, seed=0)


def started(data, lane: Lane = PLAIN, *, point: Point = POINT, steps: int = 0, **options: object) -> Training:
    feed = batches.feed(point, data, data.train, CPU, first_step=steps)
    network = networks.build(point.network, seed=0)
    training = Training(network, feed, learning_rate=0.1, steps=steps, lane=lane, **options)
    size = point.batch_size
    training.prepare((data.train.samples[:size], data.train.labels[:size]), remainder=True)
    return training


def losses(training: Training, *pieces: int) -> list[float]:
    for steps in pieces:
        training.advance(steps)
    return training.read_losses()


def graph(steps: int = 1, **fields: object) -> Lane:
    return Lane(execution="graph", steps_per_call=steps, **fields)


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
    longer = datasets.of(point)
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
    resumed.rewind(batches.feed(POINT, data, data.train, CPU), 0)
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
    feed = batches.feed(POINT, data, data.train, CPU)
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


@pytest.fixture
def compilations(monkeypatch):
    """What is asked of torch.compile, and a function that does the same without being compiled: as far as here tells.

    Each compilation is a list with its options and, for each call, the number of its steps.
    """
    asked: list[list[object]] = []

    def compile_nothing(function, **options):
        own: list[object] = [options]
        asked.append(own)

        def counted(weights, samples, labels):
            own.append(len(labels))
            return function(weights, samples, labels)

        return counted

    monkeypatch.setattr(torch, "compile", compile_nothing)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("words", ["compiled", "compiled4", "compiled10+micro4"])
def test_compiled_lanes_train_in_what_was_compiled_and_the_same_as_plain_steps(data, words, compilations):
    lane = Lane.parse(words.split("+"))
    mine, plain = started(data, lane), started(data)
    for a, b in zip(mine.weights(), plain.weights(), strict=True):
        assert torch.equal(a, b)  # compiling changes none
    counts = sorted({lane.steps_per_call, 1}, reverse=True)
    assert [calls for _, *calls in compilations] == [[count] for count in counts]
    assert losses(mine, 33) == pytest.approx(losses(plain, 33), rel=1e-5)
    whole, left = divmod(33, lane.steps_per_call)
    trained = {count: calls[1:] for count, (_, *calls) in zip(counts, compilations, strict=True)}
    assert trained == {1: [1] * left} | {lane.steps_per_call: [lane.steps_per_call] * whole}
    for a, b in zip(mine.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_what_is_compiled_is_one_function_of_fixed_shapes_with_its_calls_compiled_too(data, compilations):
    started(data, Lane.parse(["compiled"]))
    ((options, *_),) = compilations
    assert options == {"fullgraph": True, "dynamic": False, "options": {"cpp_wrapper": True}}


def test_what_a_compiler_remarks_is_neither_logged_nor_raised_and_others_may_speak_as_before(data, monkeypatch, caplog):
    chatty = [logging.getLogger(name) for name in ("torch.utils.cpp_extension", "torch._inductor", "torch._dynamo")]
    for logger in chatty:
        caplog.set_level(logging.INFO, logger=logger.name)

    def remark(function, **_):
        for logger in chatty:
            logger.warning("there is no CUDA")
            logger.error("this is an error")
        warnings.warn("there is no CUDA", stacklevel=1)
        return function

    monkeypatch.setattr(torch, "compile", remark)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        started(data, Lane.parse(["compiled"]))
        assert warned == []
        warnings.warn("there is a reason", stacklevel=1)
    assert len(warned) == 1
    assert [record.message for record in caplog.records] == ["this is an error"] * len(chatty)
    assert [logger.level for logger in chatty] == [logging.INFO] * len(chatty)


def test_compiled_code_belongs_to_a_number_of_threads(data, compilations):
    before = torch.get_num_threads()
    training = started(data, Lane.parse(["compiled"]))
    try:
        torch.set_num_threads(before + 1)
        training.advance(2)
        assert [calls for _, *calls in compilations] == [[1], [1, 1]]
        torch.set_num_threads(before)
        training.advance(1)
        assert [calls for _, *calls in compilations] == [[1, 1], [1, 1]]
    finally:
        torch.set_num_threads(before)


def test_compiled_steps_are_rehearsed_without_keeping_a_loss(data, compilations):
    training, plain = started(data, Lane.parse(["compiled4"])), started(data)
    training.rehearsal()()
    plain.advance(4)
    for a, b in zip(training.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert training.read_losses() == []
    assert training.steps == 0


@pytest.mark.parametrize("words", ["", "graph4"])
@pytest.mark.parametrize("data_path", ["resident", "per_batch"])
def test_batches_are_placed_on_the_device_and_indices_that_a_graph_gathers_by_are_not(data, words, data_path):
    lane, point = Lane.parse(filter(None, words.split("+"))), Point(**{**vars(POINT), "data_path": data_path})
    placed = []

    def place(batch):
        samples, labels = batch
        placed.append(len(labels))
        return samples, labels

    feed = dataclasses.replace(batches.feed(point, data, data.train, CPU), place=place)
    network = networks.build(point.network, seed=0)
    training = Training(network, feed, learning_rate=0.1, lane=lane, recorder=FakeRecorder())
    training.prepare((data.train.samples[:20], data.train.labels[:20]), remainder=False)
    training.rehearsal()()
    assert sum(placed) == (0 if words and data_path == "resident" else 20 * lane.steps_per_call)
    placed.clear()
    training.advance(8)
    assert sum(placed) == (0 if words and data_path == "resident" else 160)
    assert training.steps == 8


@pytest.mark.parametrize(("words", "sizes"), [("", [20]), ("bf16", [20]), ("micro5", [5] * 4), ("micro8", [8, 8, 4])])
def test_a_lane_of_micro_batches_has_so_many_samples_in_the_network_at_once(data, words, sizes):
    training, seen = started(data, Lane.parse(filter(None, words.split("+")))), []
    training.network.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    training.advance(2)
    assert seen == sizes * 2


@pytest.mark.parametrize("words", ["", "channels_last"])
def test_kernels_of_several_channels_lie_as_their_lane_says(data, words):
    kernels = [
        parameter
        for parameter in started(data, Lane.parse(filter(None, [words])), point=CNN).network.parameters()
        if parameter.dim() == 4 and parameter.shape[1] > 1
    ]
    assert kernels
    for kernel in kernels:
        assert kernel.is_contiguous(memory_format=torch.channels_last) == bool(words)
        assert kernel.is_contiguous() != bool(words)


def test_compiling_takes_what_it_took_and_once_more_what_brought_in_the_compiler(data, compilations, monkeypatch):
    training, loading_s = started(data, Lane.parse(["compiled"])), 500.0
    monkeypatch.setattr(compiled, "bring_in", lambda: loading_s)  # earlier in this process, so it takes no time now
    begin = time.perf_counter()
    seconds = training.prepare((data.train.samples[:20], data.train.labels[:20]), remainder=True)
    assert loading_s <= seconds <= loading_s + time.perf_counter() - begin


def test_a_graph_is_recorded_on_a_stream_of_its_own_device(monkeypatch):
    """PyTorch would take the stream of whichever device recorded first in this process."""
    current, recorded = [], []

    @contextlib.contextmanager
    def on(device):
        current.append(device)
        yield
        current.pop()

    @contextlib.contextmanager
    def capture(graph, *, stream=None):
        recorded.append(stream)
        yield

    monkeypatch.setattr(torch.cuda, "device", on)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: f"a stream of {current[-1]}")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", capture)
    for name in ("cuda:0", "cuda:1"):
        CudaRecorder(torch.device(name)).record(lambda: None)
    assert recorded == ["a stream of cuda:0", "a stream of cuda:1"]
