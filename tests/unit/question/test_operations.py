"""The operations of a step on a GPU, held against what torch dispatches and counts."""

import dataclasses

import pytest

from core.question import models
from core.question.models.operations import describe_step
from tests.dispatched import count_dispatched

VIEWS = {
    "t", "view", "detach", "reshape", "transpose", "expand", "_unsafe_view", "permute", "unbind", "select", "unsqueeze",
    "slice", "alias", "empty_like", "as_strided",
}  # fmt: skip


FAMILIES = [
    ("linear", {}, (20,), 0),
    ("mlp", {"hidden_size": 8, "depth": 3}, (20,), 0),
    ("mlp", {"hidden_size": 8, "depth": 1}, (8,), 100),
    ("doubling-mlp", {"depth": 5}, (2,), 0),
    ("cnn", {"width": 1}, (1, 28, 28), 0),
    ("cnn", {"width": 1}, (20,), 0),
    ("resnet", {"width": 1, "depth": 2}, (1, 28, 28), 0),
    ("transformer", {"hidden_size": 16, "depth": 2, "heads": 2}, (12,), 32),
    ("transformer", {"hidden_size": 16, "depth": 1, "heads": 2}, (1, 8, 8), 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sizes", "shape", "vocabulary"), FAMILIES)
def test_launches_and_arithmetic_are_torchs_own(family, sizes, shape, vocabulary):
    network = models.network(family, input_shape=shape, classes=10, vocabulary=vocabulary, **sizes)
    work = describe_step(network, 8, gathers=False)
    assert work.launches == count_dispatched(network, views=VIEWS, device="cpu", tokens=vocabulary > 0)
    assert sum(layer.flops for layer in work.layers) == network.flops_per_step(8)
    assert sum(layer.parameters for layer in work.layers) == network.parameters
    computed = sum(one.flops * one.count for one in work.operations)
    attention = family == "transformer"  # whose backward pass computes its scores again
    assert computed == pytest.approx(network.flops_per_step(8), rel=0.05 if attention else 0)


def test_layers_say_what_becomes_of_a_sample():
    network = models.network("mlp", input_shape=(20,), classes=2, hidden_size=1_000, depth=1)
    assert [(layer.name, layer.shape) for layer in describe_step(network, 4).layers] == [
        ("Linear", "20 → 1,000"),
        ("ReLU", "1,000"),
        ("Linear", "1,000 → 2"),
    ]


def test_convolutions_of_3_by_3_with_stride_1_are_a_kind_of_their_own():
    resnet = models.network("resnet", input_shape=(1, 28, 28), classes=10, width=1, depth=1)
    cnn = models.network("cnn", input_shape=(1, 28, 28), classes=10, width=1)
    kinds = [{one.kind for one in describe_step(network, 8).operations} for network in (resnet, cnn)]
    assert {"conv3x3", "conv3x3_weights"} <= kinds[0]
    assert {"conv", "conv_weights"} <= kinds[0]  # its first layer has too few channels, others a stride
    assert not {"conv3x3", "conv3x3_weights"} & kinds[1]


def test_fused_recurrent_layers_are_named_as_not_covered_and_loops_of_cells_are_covered():
    sizes = {"input_shape": (12,), "classes": 6, "vocabulary": 32, "hidden_size": 16, "depth": 2}
    assert describe_step(models.network("lstm", **sizes), 8).uncovered == ("FusedLayers",)
    looped = describe_step(models.network("lstm-cells", **sizes), 8)
    assert looped.uncovered == ()
    assert looped.launches > 12 * 2 * 10


def test_a_larger_batch_computes_more_in_as_many_launches():
    network = models.network("cnn", input_shape=(1, 28, 28), classes=10, width=1)
    small, large = (describe_step(network, size) for size in (8, 16))
    assert small.launches == large.launches
    assert sum(one.flops for one in large.operations) == 2 * sum(one.flops for one in small.operations)
    assert dataclasses.astuple(small.update) == dataclasses.astuple(large.update)
