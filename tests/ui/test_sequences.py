"""Models of sequences, and tokens, on the forms: which sliders there are, and what is refused in a sentence."""

import pytest

from tests.ui.conftest import CPU, GPU, words

SIZES = ("hidden_size", "depth", "width", "heads", "sequence_length")


def sliders(app) -> list[str]:
    return [name for name in SIZES if name in {control.key for control in (*app.select_slider, *app.slider)}]


@pytest.mark.parametrize(
    ("dataset", "model", "shown"),
    [
        ("token-order", "lstm", ["hidden_size", "depth", "sequence_length"]),
        ("token-order", "transformer", ["hidden_size", "depth", "heads", "sequence_length"]),
        ("token-order", "linear", ["sequence_length"]),
        ("digits", "gru-cells", ["hidden_size", "depth"]),
    ],
)
def test_compare_has_the_sizes_of_the_model_and_the_length_of_tokens(world, open_page, dataset, model, shown):
    world.has(CPU, GPU)
    app = open_page(dataset=dataset, model=model)
    assert sliders(app) == shown
    assert "parameters" in words(app)


def test_crossover_varies_the_length_of_a_sequence_and_offers_it_for_tokens_alone(world, open_page):
    world.has(CPU, GPU)
    page = "/crossover"
    app = open_page(page, dataset="token-order", model="lstm", axis="sequence_length")
    assert app.selectbox(key="axis").value == "sequence_length"
    assert app.select_slider(key="sequence_length_range").value == (4, 256)
    assert "(got 'sequence_length')" in words(open_page(page, model="lstm", axis="sequence_length"))


def test_a_compiled_lane_of_a_recurrent_model_is_refused_with_its_reason(world, open_page):
    world.has(CPU, GPU)
    app = open_page("/crossover", model="lstm", contenders=["cpu@1", "cpu@1+compiled"])
    assert "torch.compile does not compile the fused layers" in words(app)
