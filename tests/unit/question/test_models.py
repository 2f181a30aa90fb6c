"""The figures of a network as data against torch's own counts."""

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from core.errors import InvalidValue
from core.measure import networks
from core.question import catalog, models
from core.question.experiment import Point

POINTS = [
    Point(dataset=dataset, samples=100, model=model, hidden_size=24, depth=3, width=2, batch_size=16)
    for dataset in catalog.DATASETS
    for model in models.FAMILIES
]


def name(point: Point) -> str:
    return f"{point.model}-on-{point.dataset}"


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_parameters_are_those_of_the_torch_module(point):
    module = networks.build(point.network, seed=0)
    assert point.network.parameters == sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("point", POINTS, ids=name)
def test_operations_of_a_step_are_those_torch_counts(point):
    module, samples, labels = one_batch(point)
    with FlopCounterMode(display=False) as counter:
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
    expected = point.network.memory_bytes(point.batch_size)
    assert without_scalars + 2 * 4 * point.network.parameters == expected


def one_batch(point: Point) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    samples = torch.randn(point.batch_size, *point.network.input_shape)
    labels = torch.zeros(point.batch_size, dtype=torch.int64)
    return networks.build(point.network, seed=0), samples, labels


@pytest.mark.parametrize(("depth", "parameters"), [(2, 22), (4, 230), (8, 44_710), (10, 703_142)])
def test_the_doubling_mlp_has_the_published_parameter_counts(depth, parameters):
    assert Point(dataset="disc", model="doubling-mlp", depth=depth).network.parameters == parameters


def test_linear_on_mnist_has_7850_parameters():
    assert Point(dataset="mnist", model="linear").network.parameters == 7_850


def test_the_cnn_of_width_one_is_the_tutorials():
    layers = Point(dataset="fashion-mnist", model="cnn", width=1).network.layers
    sizes = [(layer.inputs, layer.outputs) for layer in layers if isinstance(layer, models.Linear)]
    channels = [layer.out_channels for layer in layers if isinstance(layer, models.Conv2d)]
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
    with pytest.raises(InvalidValue, match=r"'transformer'.*linear, mlp, doubling-mlp, cnn"):
        models.family("transformer")
