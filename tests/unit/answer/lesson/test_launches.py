"""Launches: counts held against torch's own, and steps split by hand-made rows."""

import dataclasses

import pytest

from core.answer.lessons.limits import compare_batch_sizes, count_launches, summarize_launches
from core.errors import NotComparable
from core.question import models
from core.question.experiment import Contender, Experiment, Point
from tests import rows
from tests.dispatched import count_dispatched

VIEWS = {"t", "view", "detach", "reshape", "transpose", "expand", "_unsafe_view"}


FAMILIES = [
    ("linear", {}),
    *(("mlp", {"hidden_size": 8, "depth": depth}) for depth in (1, 2, 3, 6)),
    *(("doubling-mlp", {"depth": depth}) for depth in (2, 5)),
    ("cnn", {"width": 1}),
    *(("resnet", {"width": 1, "depth": depth}) for depth in (1, 2)),
]


@pytest.mark.slow
@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("shape", [(20,), (1, 28, 28)])
@pytest.mark.parametrize(("family", "sizes"), FAMILIES)
def test_the_count_is_torchs_own(family, sizes, shape, foreach):
    network = models.network(family, input_shape=shape, classes=10, **sizes)
    assert count_launches(network, foreach=foreach) == count_dispatched(
        network, views=VIEWS, device="meta", foreach=foreach
    )


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_an_mlp_has_nine_and_six_a_layer_in_one_update_and_ten_and_eight_in_a_loop(depth):
    network = models.network("mlp", input_shape=(20,), classes=2, hidden_size=16, depth=depth)
    assert count_launches(network, foreach=True) == 9 + 6 * depth
    assert count_launches(network, foreach=False) == 10 + 8 * depth


def row(contender: str, batch_size: int, step_s: float, **changes):
    point = Point(dataset="signal", samples=16_384, model="mlp", hidden_size=64, depth=2, batch_size=batch_size)
    asked = Experiment(point=point, contenders=(Contender.parse(contender),))
    return rows.trial(contender=contender, experiment=asked, step_s=step_s, jitter=0.0, **changes)


def test_a_row_of_an_accelerator_says_how_long_it_waits():
    found = summarize_launches(row("cuda:0", 32, 210e-6, busy_step_s=(30e-6,) * 5))
    assert found.operations == 21
    assert found.per_operation_s == pytest.approx(10e-6)
    assert found.step_s - found.busy_s == pytest.approx(180e-6)
    assert "for 21 operations, 10.0 µs each" in found.sentence
    assert "computes for 30.0 µs of it (14 %)" in found.sentence


def test_on_a_cpu_the_update_is_a_loop_and_nothing_waits():
    found = summarize_launches(row("cpu", 32, 260e-6))
    assert (found.operations, found.busy_s) == (26, None)
    assert "10.0 µs each" in found.sentence
    assert "computes for" not in found.sentence


def test_sentences_follow_the_rows():
    slow, fast = (summarize_launches(row("cuda:0", 32, step_s)).sentence for step_s in (420e-6, 210e-6))
    assert "20.0 µs each" in slow
    assert "20.0 µs each" not in fast


def test_a_step_that_hardly_grows_with_its_batch_is_mostly_fixed():
    found = compare_batch_sizes(row("cuda:0", 32, 200e-6), row("cuda:0", 8_192, 404e-6))
    assert found.per_sample_s == pytest.approx(204e-6 / 8_160)
    assert found.fixed_share == pytest.approx(0.996, abs=1e-3)
    assert found.gain == pytest.approx(256 * 200 / 404)
    assert found.sentence.startswith(
        "On the GPU a step of 8,192 samples takes 2.02× as long as one of 32, for 256× the"
    )


def test_a_step_in_proportion_to_its_batch_has_no_fixed_part_and_order_does_not_matter():
    small, large = row("cpu", 32, 1e-4), row("cpu", 8_192, 256e-4)
    found = compare_batch_sizes(large, small)
    assert found == compare_batch_sizes(small, large)
    assert found.fixed_share == pytest.approx(0.0, abs=1e-6)
    assert found.gain == pytest.approx(1.0)


def test_lines_that_noise_tilts_past_the_possible_are_cut_off():
    falling = compare_batch_sizes(row("cpu", 32, 2e-4), row("cpu", 64, 1e-4))
    assert (falling.per_sample_s, falling.fixed_share) == (0.0, 1.0)
    steep = compare_batch_sizes(row("cpu", 32, 1e-4), row("cpu", 64, 9e-4))
    assert steep.fixed_s == 0.0


def test_what_was_not_timed_has_no_launches():
    empty = row("cpu", 32, 1e-4, pairs=0)
    assert summarize_launches(empty) is None
    assert compare_batch_sizes(empty, row("cpu", 64, 1e-4)) is None


def test_other_models_devices_or_the_same_batch_are_refused():
    small, large = row("cuda:0", 32, 1e-4), row("cuda:0", 64, 1e-4)
    with pytest.raises(NotComparable, match="batch size of 32"):
        compare_batch_sizes(small, small)
    with pytest.raises(NotComparable, match="contender"):
        compare_batch_sizes(small, row("cpu", 64, 1e-4))
    with pytest.raises(NotComparable, match="hidden size"):
        compare_batch_sizes(small, dataclasses.replace(large, hidden_size=128))
