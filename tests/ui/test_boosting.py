"""Gradient boosting on the forms: what a fit has a choice in, and what is said where its library is missing."""

from core.question.models import boosting
from tests.ui.conftest import CPU, GPU, words
from tests.ui.find import button, control

CROSSOVER = "pages/crossover/crossover.py"


def keys(app):
    kinds = ("selectbox", "select_slider", "slider", "multiselect", "radio", "toggle", "number_input")
    return {found.key for kind in kinds for found in getattr(app, kind)}


def test_a_fit_has_rows_rounds_leaves_and_shrinkage_and_nothing_of_batches_or_lanes(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="xgboost", dataset="signal", rounds="50")
    assert {"samples", "rounds", "leaves", "learning_rate", "seed"} <= keys(app)
    assert not {"batch_size", "epochs", "data_path", "shuffle", "loader_workers", "lanes", "dtype"} & keys(app)
    assert "50 rounds, 31 leaves" in words(app)
    assert "parameters" not in app.caption[0].value
    assert not button(app, "Run").disabled


def test_its_crossover_lies_along_rows_first(world, open_page):
    world.has(CPU, GPU)
    app = open_page(CROSSOVER, model="lightgbm", dataset="signal")
    assert control(app, "axis").value == "samples"
    assert control(app, "axis").options == ["Training samples", "Boosting rounds", "Leaves of a tree"]
    assert not button(app, "Find the crossover").disabled
    assert "batch_size" in words(open_page(CROSSOVER, model="lightgbm", axis="batch_size"))


def test_a_device_that_the_library_does_not_know_is_refused_before_anything_is_run(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="hist-boosting", devices=["cpu", "cuda:0"])
    assert button(app, "Run").disabled
    assert "where scikit-learn fits its trees" in words(app)


def test_without_its_library_the_page_says_what_to_install(world, open_page, monkeypatch):
    world.has(CPU, GPU)
    monkeypatch.setattr(boosting, "missing", lambda model: "XGBoost is not installed here: pip install it.")
    app = open_page(model="xgboost")
    assert button(app, "Run").disabled
    assert "XGBoost is not installed here" in words(app)
