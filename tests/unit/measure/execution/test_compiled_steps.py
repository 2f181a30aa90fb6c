"""Lanes that are compiled: what is compiled, for how many threads, and what is said meanwhile."""

import contextlib
import dataclasses
import logging
import time
import warnings
from types import SimpleNamespace

import pytest
import torch

from core.measure import datasets, execution, networks
from core.measure.execution import Recorder
from core.measure.training import Training
from core.question.experiment import Point
from core.question.lanes import Lane
from tests.fakes import FakeRecorder
from tests.unit.measure.execution.trained import CNN, CPU, POINT, losses, started


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

    feed = dataclasses.replace(datasets.make_feed(point, data, data.train, CPU), place=place)
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
    monkeypatch.setattr(
        execution, "import_compiler", lambda: loading_s
    )  # earlier in this process, so it takes no time now
    begin = time.perf_counter()
    seconds = training.prepare((data.train.samples[:20], data.train.labels[:20]), remainder=True)
    assert loading_s <= seconds <= loading_s + time.perf_counter() - begin


def test_a_graph_is_recorded_on_a_stream_of_its_own_device(monkeypatch):
    """PyTorch would take the stream of whichever device recorded first in this process.

    Other threads may allocate pinned memory during the recording.
    """
    current, recorded, modes = [], [], []

    @contextlib.contextmanager
    def on(device):
        current.append(device)
        yield
        current.pop()

    @contextlib.contextmanager
    def capture(graph, *, stream=None, capture_error_mode="global"):
        recorded.append(stream)
        modes.append(capture_error_mode)
        yield

    monkeypatch.setattr(torch.cuda, "device", on)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: f"a stream of {current[-1]}")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", capture)
    for name in ("cuda:0", "cuda:1"):
        Recorder(torch.device(name)).record(lambda: None)
    assert recorded == ["a stream of cuda:0", "a stream of cuda:1"]
    assert modes == ["thread_local", "thread_local"]
