"""Gradient boosting on the forms: what a fit has a choice in, and what is said where its library is missing."""

from core.question.experiment import Contender, Experiment, Point
from core.question.models import families
from tests import rows
from tests.ui.conftest import CPU, GPU, words
from tests.ui.find import alts, button, control

CROSSOVER = "/crossover"
THREADS = tuple(map(Contender.parse, ("cpu@1", "cpu@2")))


def keys(app):
    kinds = ("selectbox", "select_slider", "slider", "multiselect", "radio", "toggle", "number_input")
    return {found.key for kind in kinds for found in getattr(app, kind)}


def test_a_fit_has_rows_rounds_leaves_and_shrinkage_and_nothing_of_batches_or_lanes(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="xgboost", dataset="signal", rounds="50")
    assert {"samples", "rounds", "leaves", "learning_rate", "seed"} <= keys(app)
    assert not {"batch_size", "epochs", "data_path", "shuffle", "loader_workers", "lanes", "dtype"} & keys(app)
    assert control(app, "samples").label == "Rows"
    assert "50 rounds, 31 leaves" in words(app)
    assert "parameters" not in app.caption[0].value
    assert not button(app, "Run").disabled


def test_its_crossover_lies_along_rows_first(world, open_page):
    world.has(CPU, GPU)
    app = open_page(CROSSOVER, model="lightgbm", dataset="signal")
    assert control(app, "axis").value == "samples"
    assert control(app, "axis").options == ["Rows", "Boosting rounds", "Leaves of a tree"]
    assert not button(app, "Find the crossover").disabled
    assert "batch_size" in words(open_page(CROSSOVER, model="lightgbm", axis="batch_size"))


def test_a_device_that_the_library_does_not_know_is_refused_before_anything_is_run(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="hist-boosting", devices=["cpu", "cuda:0"])
    assert button(app, "Run").disabled
    assert "where scikit-learn fits its trees" in words(app)


def test_without_its_library_the_page_says_what_to_install(world, open_page, monkeypatch):
    world.has(CPU, GPU)
    monkeypatch.setattr(
        families, "explain_missing_library", lambda model: "XGBoost is not installed here: pip install it."
    )
    app = open_page(model="xgboost")
    assert button(app, "Run").disabled
    assert "XGBoost is not installed here" in words(app)


def test_a_run_of_fits_says_its_loss_and_that_a_fit_is_one_piece_and_shows_no_epochs_or_lanes(world, open_page):
    point = Point(dataset="signal", samples=1_000, model="xgboost", rounds=5)
    asked = Experiment(point=point, contenders=THREADS)
    none = {f"breakdown_{part}_s": () for part in ("loader", "transfer", "forward", "backward", "optimizer")}
    fit = {"parameters": 0, "flops_per_step": 0, "loss": (0.3,), "loss_step": (1,), **none}
    world.keep([rows.trial(contender=str(one), experiment=asked, **fit) for one in THREADS])
    app = open_page(run=rows.RUN_ID)
    shown = words(app)
    assert "the mean log loss over its first training rows is 0.300 on 1 CPU thread" in shown
    assert "A fit cannot be divided" in shown
    assert "What would help?" not in shown
    assert "Time of each epoch by device" not in alts(app)
