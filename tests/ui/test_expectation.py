"""What a slider may expect: from the sizes of this machine's studies, on Compare and beside a run that came of it."""

import pytest

from core.question.experiment import Point
from pages.shared import queries
from tests import rows
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import picture

PAGE = "/compare"
SIZES = {16: 0.7, 32: 0.8, 64: 0.95, 128: 1.15, 256: 1.4, 512: 1.7}
"""Hidden size → speedup of two threads over one."""

TRAINING = {"dataset": "signal", "model": "mlp", "depth": "2", "batch_size": "64"}
LINK = {**TRAINING, "hidden_size": "200", "devices": ["cpu@1", "cpu@2"]}


@pytest.fixture(autouse=True)
def _machine(world):
    world.has(CPU)


def keep(world, sizes=SIZES, **changes):
    for place, (size, speedup) in enumerate(sizes.items()):
        point = Point.parse({**TRAINING, "hidden_size": str(size)})
        steps = {"cpu@1": 1e-3, "cpu@2": 1e-3 / speedup}
        world.keep(rows.run(steps, point=point, run_id=f"d{place:011x}", pairs=6, **changes))


def said_at(app, size=None):
    """What the picture says at a size, that of the settings unless given."""
    shown = picture(app)
    return " ".join(shown["sentences"][shown["values"].index(size) if size else shown["place"]])


def test_a_setting_between_measured_sizes_is_answered_before_anything_is_measured(world, open_page):
    keep(world)
    said = said_at(open_page(PAGE, **LINK))
    assert "At a hidden size of 200, " in said
    assert ": about 1." in said
    assert "expected from 6 measured sizes." in said


def test_moving_the_slider_moves_the_marker_and_stores_nothing(world, open_page):
    keep(world)
    app = open_page(PAGE, **LINK)
    before = len(queries.open_store().trials())
    app = checked(app.select_slider(key="hidden_size").set_value(128).run())
    assert picture(app)["values"][picture(app)["place"]] == 128
    assert len(queries.open_store().trials()) == before


@pytest.mark.parametrize(
    "asked",
    [{"hidden_size": "1024"}, {"depth": "3"}, {"devices": ["cpu@1", "cpu"]}],
    ids=["beyond the measured sizes", "another training", "other devices"],
)
def test_nothing_is_said_of_what_no_study_holds(world, open_page, asked):
    keep(world)
    assert "expected from" not in said_at(open_page(PAGE, **{**LINK, **asked}))


def test_rows_of_another_machine_say_nothing_of_this_one(world, open_page):
    keep(world, machine_id="1" * 12)
    assert "Recorded on" in said_at(open_page(PAGE, **LINK))


def test_after_the_run_the_expectation_stands_beside_the_measurement(world, open_page):
    keep(world)
    point = Point.parse({**TRAINING, "hidden_size": "200"})
    world.keep(rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3 / 3}, point=point, run_id="e" * 12, pairs=6))
    said = words(open_page(PAGE, **LINK, run="e" * 12))
    assert "From 6 other measured sizes about 1." in said
    assert "was measured, more than expected." in said
    assert "Run measures it." not in said
