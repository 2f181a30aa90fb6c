"""The figures of a network as data against torch's own counts."""

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from core.errors import InvalidValue
from core.measure import networks
from core.question import catalog, models
from core.question.experiment import Point

POINTS = [
    Point(
        dataset=dataset,
        samples=100,
        model=model,
        hidden_size=24,
        depth=3,
        width=2,
        heads=5,
        sequence_length=12,
        batch_size=16,
    )
    for dataset in catalog.DATASETS
    for model, family in models.FAMILIES.items()
    if not family.library  # what is no torch is not counted
]
POINTS += [
    Point(dataset="digits", samples=100, model=model, width=1, depth=1, batch_size=4, dtype="float64")
    for model in ("mlp", "cnn", "resnet")
]


def name(point: Point) -> str:
    return f"{point.model}-on-{point.dataset}-{point.dtype}"


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_parameters_are_those_of_the_torch_module(point):
    module = networks.build(point.network, seed=0)
    assert point.network.parameters == sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS, ids=name)
def test_operations_of_a_step_are_those_torch_counts(point):
    module, samples, labels = one_batch(point)
    if point.model == "lstm":  # in float32 a library computes it, whose products torch does not count
        module = module.double()
        samples = samples if samples.dtype == torch.int32 else samples.double()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):  # the one whose products it counts
        functional.cross_entropy(module(samples), labels).backward()
    assert point.network.flops_per_step(point.batch_size) == counter.get_total_flops()


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_memory_of_a_step_is_what_autograd_keeps_plus_weights_and_gradients(point):
    module, samples, labels = one_batch(point)
    weights = {parameter.data_ptr() for parameter in module.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if tensor.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        functional.cross_entropy(module(samples), labels)
    kept[samples.data_ptr()] = samples.nbytes
    without_scalars = sum(size for size in kept.values() if size > 16)
    found = without_scalars + 2 * point.network.number_bytes * point.network.parameters
    if point.model == "transformer" and point.network.tokens:  # vectors of tokens are let go of once places are added
        found += point.network.layers[0].saved_bytes * point.batch_size
    expected = point.network.memory_bytes(point.batch_size)
    if point.model in ("lstm", "gru"):  # what a library keeps in rooms of its own is not known to the byte
        copied = 2 * point.network.number_bytes * point.network.parameters  # weights, which it may copy as well
        assert 0.9 * (found - copied) <= expected <= 1.3 * found
    else:
        assert found == expected


def one_batch(point: Point) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    shape = point.batch_size, *point.network.input_shape
    if point.network.tokens:
        samples = torch.randint(point.network.layers[0].module[1][0], shape, dtype=torch.int32)
    else:
        samples = torch.randn(shape, dtype=getattr(torch, point.dtype))
    labels = torch.zeros(point.batch_size, dtype=torch.int64)
    return networks.build(point.network, seed=0), samples, labels


@pytest.mark.parametrize(("depth", "parameters"), [(2, 22), (4, 230), (8, 44_710), (10, 703_142)])
def test_the_doubling_mlp_has_the_published_parameter_counts(depth, parameters):
    assert Point(dataset="disc", model="doubling-mlp", depth=depth).network.parameters == parameters


def test_linear_on_mnist_has_7850_parameters():
    assert Point(dataset="mnist", model="linear").network.parameters == 7_850


def test_the_cnn_of_width_one_is_the_tutorials():
    modules = [layer.module for layer in Point(dataset="fashion-mnist", model="cnn", width=1).network.layers]
    sizes = [sizes for name, sizes in modules if name == "Linear"]
    channels = [sizes[1] for name, sizes in modules if name == "Conv2d"]
    assert (channels, sizes) == ([6, 12], [(192, 120), (120, 60), (60, 10)])


def test_equal_seeds_give_equal_weights_and_other_seeds_do_not():
    network = Point().network
    first, again, other = (networks.build(network, seed) for seed in (1, 1, 2))
    pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not any(torch.equal(a, c) for a, _, c in pairs)


def test_building_leaves_torchs_own_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    networks.build(Point().network, seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_an_unknown_family_is_named_with_those_there_are():
    with pytest.raises(InvalidValue, match=r"linear, mlp, doubling-mlp, cnn.*'perceptron'"):
        models.family("perceptron")


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("dataset", ["token-order", "digits"])
def test_fused_layers_and_a_loop_of_cells_have_the_same_weights_losses_and_facts(kind, dataset):
    fused, looped = (
        Point(dataset=dataset, samples=100, model=model, hidden_size=8, depth=2, sequence_length=6, batch_size=4)
        for model in (kind, f"{kind}-cells")
    )
    assert fused.network.parameters == looped.network.parameters
    assert fused.network.flops_per_step(4) == looped.network.flops_per_step(4)
    (one, samples, _), (other, *_) = one_batch(fused), one_batch(looped)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(one.parameters(), other.parameters(), strict=True))
    torch.testing.assert_close(one(samples), other(samples))


@pytest.mark.parametrize(("hidden_size", "heads"), [(8, 4), (10, 4), (3, 8)])
def test_any_number_of_heads_goes_with_any_hidden_size(hidden_size, heads):
    point = Point(
        dataset="token-order", samples=100, model="transformer", hidden_size=hidden_size, heads=heads, depth=1
    )
    module = networks.build(point.network, seed=0)
    assert point.network.parameters == sum(parameter.numel() for parameter in module.parameters())


def test_a_transformer_grows_with_its_hidden_size_so_that_parameters_can_be_reached():
    sizes = [Point(model="transformer", hidden_size=size, heads=4).network.parameters for size in range(1, 40)]
    assert sizes == sorted(set(sizes))


def test_tokens_stand_in_32_bits_whatever_the_network_computes_in():
    plain, longer = (Point(dataset="token-order", model="lstm", dtype=name).network for name in ("float32", "float64"))
    assert plain.sample_bytes == longer.sample_bytes == 4 * 32
    assert longer.number_bytes == 8


def test_the_length_of_a_sequence_is_asked_of_tokens_alone():
    assert models.list_model_sizes("lstm", "token-order") == ("hidden_size", "depth", "sequence_length")
    assert models.list_model_sizes("linear", "token-order") == ("sequence_length",)
    assert models.list_model_sizes("lstm", "digits") == ("hidden_size", "depth")
    assert Point(dataset="digits", model="lstm", sequence_length=99).sequence_length == 0
    assert Point(dataset="token-order", model="mlp").sequence_length == 32
