from collections import defaultdict

import pytest

from core.answer import expectations
from core.answer.speedup import speedup
from core.question import presets
from core.question.experiment import Contender, Experiment, Point
from core.results.store import GALLERY, Store
from tests import rows

THREADS = presets.default_contenders(["cpu"], 2)


def stored(**steps):
    """Answers of a store that has runs at these hidden sizes, of all threads with this speedup."""
    points = {Point(hidden_size=int(name[1:])): gain for name, gain in steps.items()}
    runs = {
        Experiment(point=point, contenders=THREADS).id: rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3 / gain}, point=point)
        for point, gain in points.items()
    }
    return lambda asked: {each.id: runs[each.id] for each in asked if each.id in runs}


@pytest.mark.parametrize(
    ("known", "size"),
    [
        ({}, 1_024),
        ({"h1024": 1.6}, 1_024),
        ({"h1024": 1.05}, 2_048),
        ({"h1024": 0.7, "h2048": 1.9}, 2_048),
        ({"h1024": 0.7, "h2048": 1.0}, 4_096),
        ({"h1024": 0.7, "h2048": 0.9, "h4096": 1.0}, 4_096),
        ({"h128": 0.5}, 1_024),
    ],
)
def test_the_first_training_is_one_at_which_threads_matter_on_this_machine(known, size):
    assert expectations.first_training(THREADS, stored(**known)) == Point(hidden_size=size)


@pytest.mark.parametrize("contenders", ["cpu cuda:0", "cpu@1", "cpu"])
def test_against_an_accelerator_or_nobody_it_is_the_usual_one(contenders):
    contenders = tuple(map(Contender.parse, contenders.split()))
    assert expectations.first_training(contenders, stored()) == Point()


@pytest.mark.slow
def test_the_gallery_says_that_threads_matter_well_below_the_usual_first_size():
    runs = defaultdict(dict)
    for row in Store(GALLERY).trials(machine_id=None):
        if row.model == "mlp" and row.precision == "fp32":
            runs[row.run_id][row.contender] = row
    pairs = [(run["cpu@1"], run["cpu@2"]) for run in runs.values() if {"cpu@1", "cpu@2"} <= set(run)]
    told = {one.hidden_size: speedup(one, other).low for one, other in pairs if len(one.block_pair) >= 6}
    beyond = [low for size, low in told.items() if 2 * size >= expectations.FIRST_SIZES[0]]
    assert len(beyond) >= 3
    assert min(beyond) > expectations.CLEAR_SPEEDUP
