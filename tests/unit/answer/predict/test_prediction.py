"""What is predicted of a card that is not here, on rows whose numbers are chosen."""

import dataclasses
import json

import pytest

from core.answer import predict
from core.errors import InvalidValue, NotComparable
from core.question.experiment import Point
from core.question.lanes import Lane
from tests.unit.answer.predict.measured_cpu import LARGE, SMALL, cpu_side, measured


def test_a_large_model_is_faster_on_the_gpu_and_bound_by_arithmetic():
    found = predict.predict(LARGE, "p100", cpu_side(measured(LARGE, 50e-3)))
    assert (found.answer, found.bound) == ("gpu_faster", "arithmetic")
    assert 1 < found.speedup.low < found.speedup.high
    assert "predicted" in found.sentence
    assert found.reasons == ("90 % of published trainings like these were within such a range.",)


def test_a_tiny_model_is_faster_on_the_cpu_where_both_ends_of_the_launches_say_so():
    found = predict.predict(SMALL, "h100", cpu_side())
    assert (found.answer, found.bound) == ("cpu_faster", "launches")
    assert "a more expensive card would not help" in found.sentence


def test_between_them_it_cannot_be_told_and_says_both_bounds_and_what_decides():
    middle = dataclasses.replace(SMALL, hidden_size=512)
    found = predict.predict(middle, "v100", cpu_side(measured(middle, 0.6e-3)))
    assert found.answer == "cannot_tell"
    assert found.speedup.low < 1 < found.speedup.high
    assert "0.50× to 3.8×" in found.sentence
    assert "decides" in found.sentence


@pytest.mark.parametrize("card", [card.key for card in predict.list_cards()])
def test_in_the_small_regime_the_card_does_not_matter(card):
    assert predict.predict(SMALL, card, cpu_side()).speedup.low == pytest.approx(
        predict.predict(SMALL, "h100", cpu_side()).speedup.low
    )


def test_without_a_measured_cpu_only_the_step_is_predicted():
    found = predict.predict(LARGE, "v100")
    assert (found.answer, found.speedup) == ("cannot_tell", None)
    assert 0 < found.step_s.low < found.step_s.high
    assert "The CPU was not measured" in found.sentence


def test_a_single_thread_of_a_cpu_with_more_predicts_nothing():
    row = measured(LARGE, 50e-3, contender="cpu@1")
    found = predict.predict(LARGE, "v100", predict.read_cpu([row]))
    assert (found.answer, found.speedup) == ("cannot_tell", None)
    assert "Only one CPU thread was measured" in found.sentence


def test_one_thread_counts_where_more_were_tried():
    row = measured(LARGE, 50e-3, contender="cpu", threads=1, threads_tried=(1, 2))
    assert predict.predict(LARGE, "v100", predict.read_cpu([row])).answer == "gpu_faster"


def test_a_busy_cpu_predicts_nothing():
    row = measured(LARGE, 50e-3, block_steal=(0.5,) * 20)
    found = predict.predict(LARGE, "v100", cpu_side(row))
    assert (found.answer, found.speedup) == ("cannot_tell", None)
    assert "busy" in found.sentence


def test_a_cpu_that_is_slow_in_its_smallest_model_predicts_nothing():
    side = predict.read_cpu([measured(SMALL, 2e-3), measured(LARGE, 50e-3)])
    found = predict.predict(LARGE, "v100", side)
    assert (found.answer, found.speedup) == ("cannot_tell", None)
    assert "probably busy" in found.sentence


def test_where_the_loader_takes_nearly_all_no_gpu_would_matter():
    point = dataclasses.replace(SMALL, hidden_size=512, data_path="tutorial")
    others = {f"breakdown_{part}_s": () for part in ("transfer", "backward", "optimizer")}
    parts = {**others, "breakdown_loader_s": (18e-3,) * 3, "breakdown_forward_s": (1e-3,) * 3}  # timed apart, as shares
    found = predict.predict(point, "h100", cpu_side(measured(point, 9.5e-3, **parts)))
    assert (found.answer, found.bound) == ("no_matter", "loader")
    assert found.most == pytest.approx(9.5 / 9, rel=0.01)
    assert "No GPU can help more than 1.06×" in found.sentence


def test_a_loader_that_was_not_timed_leaves_it_open():
    point = dataclasses.replace(SMALL, data_path="loader")
    found = predict.predict(point, "h100", cpu_side(measured(point, 9.5e-3, breakdown_loader_s=())))
    assert (found.answer, found.speedup) == ("cannot_tell", None)
    assert "loader" in found.sentence


FUSED = dataclasses.replace(SMALL, dataset="token-order", samples=4_000, model="lstm", sequence_length=16)
NOT_COVERED = [
    (SMALL, "mps", Lane()),
    (SMALL, "MI210", Lane()),
    (SMALL, "xpu", Lane()),
    (SMALL, "v100", Lane(precision="bf16")),
    (SMALL, "v100", Lane(precision="tf32")),
    (SMALL, "v100", Lane(execution="compiled", steps_per_call=10)),
    (dataclasses.replace(SMALL, dtype="float64"), "v100", Lane()),
    (FUSED, "v100", Lane()),
    (Point(dataset="signal", samples=2_000, model="xgboost", rounds=10, leaves=8), "v100", Lane()),
]


@pytest.mark.parametrize(("point", "card", "lane"), NOT_COVERED)
def test_what_is_not_covered_is_said_in_a_sentence(point, card, lane):
    found = predict.predict(point, card, cpu_side(), lane=lane)
    assert (found.answer, found.speedup, found.step_s) == ("not_covered", None, None)
    assert "Not covered: " in found.sentence


def test_an_unknown_card_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidValue, match="v100"):
        predict.predict(SMALL, "gtx-9000")


def test_a_training_that_does_not_fit_is_not_predicted():
    huge = dataclasses.replace(LARGE, hidden_size=16_384, depth=8, batch_size=16_384)
    found = predict.predict(huge, "gtx-1080")
    assert (found.answer, found.step_s) == ("cannot_tell", None)
    assert "GB" in found.sentence


def test_a_training_of_larger_operations_than_any_that_was_timed_is_not_predicted():
    images = Point(dataset="fashion-mnist", samples=20_000, model="cnn", width=32, batch_size=20_000)
    usual = dataclasses.replace(images, width=1, batch_size=64)
    assert predict.predict(usual, "h100").step_s is not None
    found = predict.predict(images, "h100")
    assert (found.answer, found.step_s) == ("cannot_tell", None)
    assert "larger than any that was timed" in found.sentence


def test_a_card_of_the_data_sheet_has_a_wider_band():
    wide, narrow = (predict.predict(LARGE, card).parts["arithmetic"] for card in ("gtx-1080", "gtx-1080-ti"))
    assert wide.high / wide.low > narrow.high / narrow.low


def test_rows_of_several_machines_are_refused():
    with pytest.raises(NotComparable):
        predict.read_cpu([measured(SMALL, 1e-4), measured(LARGE, 1e-2, machine_id="0123456789ab")])


def test_of_the_thread_counts_the_fastest_counts():
    side = predict.read_cpu([measured(SMALL, 1e-4, contender="cpu@1"), measured(SMALL, 2e-4)])
    assert side.find_step(SMALL).step_s == pytest.approx(1e-4)
    assert side.find_step(SMALL).obstacle == ""


def gpu_row(point: Point, step_s: float, name: str = "NVIDIA H100 80GB HBM3", contender: str = "cuda:0", **changes):
    return measured(point, step_s, contender=contender, device_name=name, device_kind="cuda", **changes)


def test_real_runs_are_set_beside_what_was_predicted_without_them():
    expected = predict.predict(LARGE, "h100").step_s
    inside, outside = gpu_row(LARGE, expected.middle), gpu_row(LARGE, 10 * expected.high)
    found = predict.compare_runs([inside, outside, gpu_row(LARGE, 1.0, "NVIDIA GeForce RTX 3050")])
    assert found.keys() == {"h100"}
    assert found["h100"].coverage == 0.5
    off = {"h100": predict.Comparison(runs=found["h100"].runs[1:] * 10)}
    assert predict.predict(LARGE, "h100", cpu_side(measured(LARGE, 50e-3)), record=off).answer == "not_covered"
    assert predict.predict(LARGE, "v100", cpu_side(measured(LARGE, 50e-3)), record=off).answer == "gpu_faster"


def test_a_real_run_is_compared_with_what_its_own_host_takes_for_an_operation():
    slow = measured(SMALL, 2e-3, machine_id="0123456789ab")
    expected = predict.predict(SMALL, "h100", predict.read_cpu([slow])).step_s
    card = gpu_row(SMALL, 0.99 * expected.high, machine_id="0123456789ab")
    assert predict.compare_runs([card])["h100"].coverage == 0
    assert predict.compare_runs([card, measured(SMALL, 1e-4)])["h100"].coverage == 0, "another machine's CPU"
    assert predict.compare_runs([card, slow])["h100"].coverage == 1


def test_a_run_says_how_far_its_prediction_was_off_from_the_cpu_and_the_training_alone():
    cpu = measured(LARGE, 50e-3)
    expected = predict.predict(LARGE, "h100", predict.read_cpu([cpu])).speedup
    said = predict.compare_run(cpu, gpu_row(LARGE, 50e-3 / expected.middle), expected.middle)
    assert said.startswith("Predicted ")
    assert said.endswith("inside the predicted range.")
    outside = predict.compare_run(cpu, gpu_row(LARGE, 1e-6), 10 * expected.high)
    assert outside.endswith("outside the predicted range.")
    assert predict.compare_run(cpu, gpu_row(LARGE, 1.0, "NVIDIA GeForce RTX 3050"), 2.0) == ""
    busy = measured(LARGE, 50e-3, contender="cpu@1")
    assert "Only one CPU thread was measured" in predict.compare_run(busy, gpu_row(LARGE, 1e-3), 50.0)
    lower = gpu_row(LARGE, 1e-3, contender="cuda:0+bf16", precision="bf16")
    assert "float32" in predict.compare_run(cpu, lower, 50.0)


def test_runs_in_another_precision_are_not_compared():
    assert predict.compare_runs([gpu_row(LARGE, 1e-3, contender="cuda:0+bf16", precision="bf16")]) == {}


def test_a_curve_is_plain_data_as_long_as_its_sizes_and_never_beyond_the_measured_ones():
    rows = [measured(dataclasses.replace(SMALL, hidden_size=size), s) for size, s in ((64, 2e-4), (4_096, 50e-3))]
    values = [8, 64, 512, 4_096, 8_192]
    curve = predict.sample_curve(SMALL, "hidden_size", values, "v100", cpu_side(*rows))
    assert json.loads(json.dumps(curve)) == curve
    assert curve["measured"] == [True, True, False, True, False]
    assert curve["cpu_step_s"][2] == pytest.approx((2e-4 * 50e-3) ** 0.5)
    assert curve["cpu_step_s"][4] is None
    assert curve["speedup"]["low"][4] is None
    assert curve["gpu_step_s"]["low"][4] > 0
    assert 64 < curve["crossover"]["high"] < 4_096
    lists = [curve["answer"], *curve["figures"].values(), *curve["parts"]["launches"].values(), curve["layers"]]
    assert {len(listed) for listed in lists} == {5}


def test_a_curve_of_a_device_that_is_not_covered_says_so_at_every_size():
    curve = predict.sample_curve(SMALL, "hidden_size", [8, 64], "mps", cpu_side())
    assert curve["answer"] == ["not_covered", "not_covered"]
    assert curve["gpu_step_s"]["low"] == [None, None]
    assert curve["figures"]["parameters"] == [258, 5_634]


AXES = [
    (SMALL, "hidden_size", [8, 64, 2_048]),
    (SMALL, "depth", [1, 2, 6]),
    (SMALL, "batch_size", [16, 128, 1_024]),
    (dataclasses.replace(SMALL, dataset="digits", samples=1_000, model="cnn", width=1), "width", [1, 4, 8]),
]


@pytest.mark.parametrize(("point", "axis", "values"), AXES)
def test_closed_forms_give_the_figures_at_every_whole_size(point, axis, values):
    forms = predict.sample_figures(point, axis, values)["closed_forms"]
    for size in range(values[0], values[-1] + 1, max(1, values[-1] // 7)):
        exact = predict.sample_figures(point, axis, [size])["figures"]
        for name in ("parameters", "flops", "memory_bytes"):
            assert sum(c * size**power for power, c in enumerate(forms[name])) == exact[name][0]


def test_a_doubling_network_has_no_closed_form():
    point = Point(dataset="disc", samples=1_000, model="doubling-mlp", depth=8, batch_size=100)
    assert predict.sample_figures(point, "depth", [2, 4, 8, 12])["closed_forms"]["parameters"] is None
