"""The loader as bottleneck on real measurements: one training through torchvision's own class, fed in two ways."""

import dataclasses

import pytest

from core.answer.lessons.limits import LOSS_TOLERANCE, find_bottleneck, loss_difference
from core.measure import datasets
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from tests import brief, idx

POINT = Point(dataset="mnist", samples=300, model="linear", batch_size=50, epochs=4, learning_rate=0.005)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        brief.measurements(patch.setattr)
        patch.setattr(datasets, "DATASETS_FOLDER", idx.write(tmp_path_factory.mktemp("files"), train=400, test=50))

        def row(**changes):
            point = dataclasses.replace(POINT, **changes)
            (found,) = measure(Experiment(point=point, contenders=(Contender(threads=1),), pairs=2), hooks=Hooks())
            return found

        yield {
            "tutorial": row(data_path="tutorial"),
            "resident": row(data_path="resident"),
            "in order": row(data_path="resident", shuffle=False),
        }


def test_the_same_batches_in_the_same_order_learn_the_same_whatever_way_they_come(rows):
    found = find_bottleneck([rows["tutorial"], rows["resident"]])
    assert found.same_losses
    assert len(rows["tutorial"].loss) == POINT.total_steps


def test_another_order_of_the_same_samples_is_told_from_rounding(rows):
    assert loss_difference([rows["tutorial"], rows["in order"]]) > 10 * LOSS_TOLERANCE


def test_the_parts_are_measured_and_only_the_loader_of_the_tutorials_way_bounds(rows):
    found = {way.data_path: way for way in find_bottleneck([rows["tutorial"], rows["resident"]]).ways}
    assert found["tutorial"].bound == pytest.approx(1 / found["tutorial"].loader_share)
    assert found["resident"].bound is None
    assert all(seconds > 0 for part, seconds in found["tutorial"].parts_s.items() if part != "transfer")
