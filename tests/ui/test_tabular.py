"""Number formats, tables of categories, real tables and residual networks on the forms."""

from core.question.catalog import DATASETS
from tests.ui.conftest import CPU, GPU, words

CROSSOVER = "/crossover"


def test_every_training_has_a_number_format_which_the_link_says(world, open_page):
    world.has(CPU, GPU)
    control = open_page().selectbox(key="dtype")
    assert (control.label, control.value) == ("Number format", "float32")
    assert control.options == ["32-bit numbers", "64-bit numbers"]
    app = open_page(dtype="float64")
    assert app.selectbox(key="dtype").value == "float64"
    refused = open_page(dtype="float64", devices=["cpu", "cuda:0+bf16"])
    assert "(got 'bf16')" in words(refused)


def test_categories_have_a_slider_for_the_rows_of_their_embedding(world, open_page):
    world.has(CPU, GPU)
    assert "embedding_rows" not in {slider.key for slider in open_page().select_slider}
    app = open_page(dataset="clicks")
    assert app.select_slider(key="embedding_rows").value == 10_000
    assert "hash" in app.selectbox(key="dataset").help
    app = open_page(CROSSOVER, dataset="clicks", axis="embedding_rows")
    assert app.select_slider(key="embedding_rows_range").value == (100, 1_000_000)
    assert "embedding_rows" in words(open_page(CROSSOVER, dataset="digits", axis="embedding_rows"))


def test_real_tables_are_offered_and_say_what_was_made_of_their_target(world, open_page):
    world.has(CPU, GPU)
    control = open_page(dataset="diabetes", batch_size="1").selectbox(key="dataset")
    assert control.value == "diabetes"
    assert "split into three classes" in control.help
    assert {"Breast cancer", "Wine", "Diabetes"} <= set(control.options)
    assert {name for name, facts in DATASETS.items() if facts.bundled} >= {"breast-cancer", "wine"}


def test_a_residual_network_has_width_and_depth_and_lanes_of_images(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="resnet", width="2", depth="1", batch_size="1")
    assert (app.slider(key="width").value, app.slider(key="depth").value) == (2, 1)
    assert app.select_slider(key="batch_size").value == 1
    assert "channels last" in app.multiselect(key="lanes").options
