"""The questions of the four tutorials for three cards beside the published answers, from recorded CPUs."""

import dataclasses

import pytest

from core.answer import predict
from core.files.project import PROJECT
from core.question.presets import PRESETS
from core.results.store import Store
from tests.unit.answer.predict.measured_cpu import SMALL, TINY_STEP_S, measured

CARDS = ("p100", "v100", "h100")
DISC_SIDES = {depth: "gpu_faster" if depth >= 10 else "cpu_faster" for depth in range(2, 13)}
SIGNAL_SIDES = {10: "cpu_faster", 100: "cpu_faster", 1_000: "gpu_faster", 2_000: "gpu_faster"}
"""Who was faster as published, by size."""


@pytest.fixture(scope="module")
def recorded():
    found = {}
    for row in Store(PROJECT / "data" / "gallery").trials():
        found.setdefault(row.machine_id, []).append(row)
    return {machine: predict.read_cpu(rows) for machine, rows in found.items()}


def answers(cpu, preset, axis, sides, card):
    point = dataclasses.replace(PRESETS[preset].point, data_path="resident")
    at = {size: dataclasses.replace(point, **{axis: size}) for size in sides}
    return {size: predict.predict(one, card, cpu) for size, one in at.items() if cpu.find_step(one)}


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize(
    ("machine", "preset", "axis", "sides", "open_sizes"),
    [
        ("207fa2ff040b", "disc", "depth", DISC_SIDES, 5),
        ("b88d65c2fcd6", "disc", "depth", DISC_SIDES, 4),
        ("207fa2ff040b", "signal", "hidden_size", SIGNAL_SIDES, 0),
    ],
)
def test_no_size_is_on_the_wrong_side_and_open_ones_are_counted(
    recorded, card, machine, preset, axis, sides, open_sizes
):
    found = answers(recorded[machine], preset, axis, sides, card)
    assert found.keys() == sides.keys()
    told = {size: made.answer for size, made in found.items() if made.answer != "cannot_tell"}
    assert told == {size: sides[size] for size in told}
    assert len(found) - len(told) == open_sizes


def with_loader(preset: str, step_s: float, loader_share: float):
    """A CPU that takes so long for the step, and a share of it for the batch."""
    point = PRESETS[preset].point
    loader_s, rest_s = loader_share * step_s, (1 - loader_share) * step_s
    parts = {"breakdown_loader_s": (loader_s,) * 3, "breakdown_forward_s": (rest_s,) * 3}
    row = measured(point, step_s, **parts, breakdown_transfer_s=(), breakdown_backward_s=(), breakdown_optimizer_s=())
    return point, predict.read_cpu([measured(SMALL, TINY_STEP_S), row])


@pytest.mark.parametrize("card", CARDS)
def test_the_lab_whose_loader_takes_nearly_all_is_told_that_no_gpu_would_matter(card):
    point, cpu = with_loader("mnist-linear", 9.5e-3, 0.96)
    found = predict.predict(point, card, cpu)
    assert found.answer == "no_matter"
    assert found.most < 1.1


@pytest.mark.parametrize("card", CARDS)
def test_the_network_on_images_is_faster_on_the_gpu_and_bound_by_its_loader(card):
    point, cpu = with_loader("fashion-cnn", 85e-3, 0.42)
    found = predict.predict(point, card, cpu)
    assert (found.answer, found.bound) == ("gpu_faster", "loader")
    assert found.speedup.low < 2.0 < found.speedup.high  # published: about twice
    assert found.speedup.high == pytest.approx(found.most)
