"""The loader as bottleneck: parts, Amdahl's bound, ways side by side, and what is refused."""

import dataclasses

import pytest

from core.answer.lessons.limits import LOSS_TOLERANCE, find_bottleneck, loss_difference, summarize_way
from core.errors import NotComparable
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import field_title
from core.results.schema import Trial
from tests import rows

POINT = Point(dataset="mnist", samples=50_000, model="linear", batch_size=128, epochs=5, data_path="tutorial")
PARTS = ("loader", "transfer", "forward", "backward", "optimizer")


def row(data_path: str, *, step_s: float, loader: float, workers: int = 0, contender: str = "cpu", **changes) -> Trial:
    """A row whose step has a share `loader` of loader, half of the rest forward and half backward."""
    point = dataclasses.replace(POINT, data_path=data_path, loader_workers=workers)
    shares = {"loader": loader, "forward": (1 - loader) / 2, "backward": (1 - loader) / 2}
    parts = {f"breakdown_{part}_s": (shares.get(part, 0.0) * step_s,) * 5 for part in PARTS}
    asked = Experiment(point=point, contenders=(Contender.parse(contender),))
    return rows.trial(contender=contender, experiment=asked, step_s=step_s, jitter=0.0, **{**parts, **changes})


TUTORIAL = row("tutorial", step_s=0.01, loader=0.9)
RESIDENT = row("resident", step_s=0.0002, loader=0.2)


def test_the_epoch_is_split_into_its_measured_parts():
    found = summarize_way(TUTORIAL)
    assert found.epoch_s == pytest.approx(3.9)
    assert found.parts_s["loader"] == pytest.approx(3.51)
    assert sum(found.parts_s.values()) == pytest.approx(3.9)
    assert found.loader_share == pytest.approx(0.9)


@pytest.mark.parametrize(("share", "bound"), [(0.9, 1 / 0.9), (0.5, 2.0), (0.1, 10.0)])
def test_an_infinitely_fast_device_leaves_the_loader(share, bound):
    found = summarize_way(row("tutorial", step_s=0.01, loader=share))
    assert found.bound == pytest.approx(bound)
    assert f"the loader is {100 * share:.0f} % of it" in found.sentence
    assert found.sentence.endswith(f"could gain at most {bound:.2f}×." if bound < 10 else "could gain at most 10.0×.")


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        (RESIDENT, "the device makes these batches itself"),
        (row("tutorial", step_s=0.01, loader=0.5, workers=2), "prepare batches in parallel"),
        (row("loader", step_s=0.01, loader=0.0), "no time that could be measured"),
    ],
)
def test_where_the_loader_is_no_fixed_cost_there_is_no_bound_and_it_says_why(trial, reason):
    found = summarize_way(trial)
    assert found.bound is None
    assert reason in found.bound_reason
    assert found.sentence.endswith(f"{found.bound_reason}.")


def test_a_row_without_parts_still_has_its_epoch():
    found = summarize_way(dataclasses.replace(TUTORIAL, **{f"breakdown_{part}_s": () for part in PARTS}))
    assert (found.parts_s, found.loader_share, found.bound) == ({}, None, None)
    assert found.sentence.endswith("its parts were not measured.")


def test_ways_are_put_side_by_side_slowest_first():
    workers = row("tutorial", step_s=0.004, loader=0.7, workers=4)
    found = find_bottleneck([RESIDENT, TUTORIAL, workers])
    assert [(one.data_path, one.loader_workers) for one in found.ways] == [
        ("tutorial", 0),
        ("tutorial", 4),
        ("resident", 0),
    ]
    assert found.ways[0].title == "Per-sample transforms, no workers"
    assert found.ways[1].title == "Per-sample transforms, 4 workers"
    assert found.gain == pytest.approx(50)
    assert found.sentence.startswith("On the CPU the same training is 50.0× as fast (95 % interval 50.0× to 50.0×)")
    assert "with its data copied once as with its data transformed one sample at a time" in found.sentence


def test_the_gain_and_its_sentence_follow_the_rows():
    found = find_bottleneck([TUTORIAL, row("resident", step_s=0.001, loader=0.2)])
    assert found.gain == pytest.approx(10)
    assert "10.0× as fast" in found.sentence


def test_noise_widens_the_interval_of_the_gain():
    noisy = [dataclasses.replace(one, block_end_ns=_scattered(one)) for one in (TUTORIAL, RESIDENT)]
    found = find_bottleneck(noisy)
    assert found.gain_low < found.gain < found.gain_high


def test_few_blocks_give_a_gain_without_an_interval():
    found = find_bottleneck([TUTORIAL, row("resident", step_s=0.001, loader=0.2, pairs=3)])
    assert (found.gain_low, found.gain_high) == (None, None)
    assert "interval" not in found.sentence


def test_curves_that_differ_by_rounding_are_the_same():
    found = find_bottleneck([TUTORIAL, _with_losses(RESIDENT, 1 + 1e-6)])
    assert found.same_losses
    assert found.loss_difference == pytest.approx(1e-6, rel=1e-3)
    assert "the loss curves are the same except for rounding (a relative difference of at most 1e-06" in found.sentence


def test_curves_further_apart_than_rounding_are_said_to_differ():
    found = find_bottleneck([TUTORIAL, _with_losses(RESIDENT, 1 + 10 * LOSS_TOLERANCE)])
    assert not found.same_losses
    assert "but the loss curves differ" in found.sentence


def test_curves_of_other_segments_or_without_a_number_are_not_compared():
    assert loss_difference([TUTORIAL]) is None
    shifted = dataclasses.replace(RESIDENT, loss_step=tuple(step + 1 for step in RESIDENT.loss_step))
    assert loss_difference([TUTORIAL, shifted]) is None
    assert loss_difference([TUTORIAL, _with_losses(RESIDENT, float("nan"))]) is None
    found = find_bottleneck([TUTORIAL, shifted])
    assert (found.loss_difference, found.same_losses) == (None, None)
    assert "loss curves" not in found.sentence


def test_a_curve_that_ended_sooner_is_compared_as_far_as_it_goes():
    cut = dataclasses.replace(
        RESIDENT, loss=RESIDENT.loss[:5], loss_step=(*RESIDENT.loss_step[:4], RESIDENT.loss_step[4] - 1)
    )
    assert loss_difference([TUTORIAL, cut]) == 0.0


def test_one_way_alone_and_none():
    assert find_bottleneck([TUTORIAL]).sentence == "Only one way of delivering the data was measured on the CPU."
    assert find_bottleneck([row("tutorial", step_s=0.01, loader=0.9, pairs=0)]) is None


def test_of_a_way_that_was_measured_again_the_newest_row_counts():
    old = row("resident", step_s=0.005, loader=0.2, started_at="2020-01-01T00:00:00+00:00")
    assert find_bottleneck([RESIDENT, old, TUTORIAL]) == find_bottleneck([TUTORIAL, RESIDENT])


@pytest.mark.parametrize("changes", [{"contender": "cuda:0"}, {"seed": 3}, {"machine_id": "0" * 12}])
def test_rows_that_differ_in_more_than_how_data_arrive_are_refused(changes):
    with pytest.raises(NotComparable, match=f"its {field_title(next(iter(changes)))} is "):
        find_bottleneck([TUTORIAL, dataclasses.replace(RESIDENT, **changes)])


def test_the_best_number_of_threads_may_be_another_for_each_way():
    assert len(find_bottleneck([TUTORIAL, dataclasses.replace(RESIDENT, threads=2)]).ways) == 2


def test_a_row_without_a_timed_block_is_no_way():
    with pytest.raises(NotComparable, match="Nothing was timed"):
        summarize_way(row("tutorial", step_s=0.01, loader=0.9, pairs=0))


def _with_losses(trial: Trial, factor: float) -> Trial:
    return dataclasses.replace(trial, loss=tuple(loss * factor for loss in trial.loss))


def _scattered(trial: Trial) -> tuple[int, ...]:
    """Ends of blocks that take between 90 and 110 % of their time."""
    blocks = enumerate(zip(trial.block_begin_ns, trial.block_end_ns, strict=True))
    return tuple(begin + (end - begin) * (90 + number % 21) // 100 for number, (begin, end) in blocks)
