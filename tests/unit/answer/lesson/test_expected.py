"""Which answers fit what was measured, and that a wrong one is never called right."""

import dataclasses

import pytest

from core.answer.judgement import Crossing, Crossover, Size
from core.answer.lessons import outcomes
from core.answer.lessons.outcomes import PredictionOutcome
from core.question.experiment import Contender, Point
from core.question.presets import PRESETS
from tests import exhibited, rows
from tests.studies import measured

OPTIONS = ("slower", "alike", "faster")
PLACES = (2, 4, 6, 8)
PAIR = ("cpu", "cuda:0")


@pytest.mark.parametrize(
    ("fits", "place", "said"),
    [
        ((1,), 1, "You predicted: alike. You were right. It took 1 s."),
        ((1,), 0, "You predicted: slower. The measurement disagrees. The matching answer: alike. It took 1 s."),
        ((0, 1), 0, "You predicted: slower. The measurement agrees, but also fits another answer. It took 1 s."),
        (
            (0, 1),
            2,
            "You predicted: faster. The measurement disagrees. The matching answer: slower or alike. It took 1 s.",
        ),
        ((), 0, "You predicted: slower. The measurement disagrees. It took 1 s."),
        (None, 0, "You predicted: slower. The measurement does not decide that. It took 1 s."),
    ],
)
def test_every_case_has_a_sentence_of_its_own(fits, place, said):
    assert PredictionOutcome(fits=fits, fact="It took 1 s.").sentence(OPTIONS, place) == said


def test_answers_with_a_comma_of_their_own_are_told_apart():
    said = PredictionOutcome(fits=(0, 1), fact="It took 1 s.").sentence(("alike, within 10 %", "faster", "slower"), 2)
    assert "The matching answer: “alike, within 10 %” or “faster”." in said


def test_an_answer_that_one_measurement_cannot_judge_is_neither_right_nor_wrong():
    outcome = PredictionOutcome(fits=(0,), fact="It was.", open=(2,))
    assert "does not decide" in outcome.sentence(OPTIONS, 2)
    assert not outcome.is_right(2)


def at(size, verdict):
    return Size(size=size, baseline_s=1, challenger_s=1, readings=6, speedup=1.0, low=None, high=None, verdict=verdict)


def crossing(low, estimate, high, *, above=True):
    found = Crossing(estimate=estimate, low=low, high=high, challenger_above=above)
    blank = Crossover(axis="depth", basis="steady", baseline="a", challenger="b")
    return dataclasses.replace(blank, outcome="crossing", crossings=(found,), sentence="They cross.")


def always(outcome, *sizes):
    return dataclasses.replace(crossing(4, 4, 4), outcome=outcome, sizes=sizes)


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        (crossing(4.5, 5, 5.5), (2,)),
        (crossing(3.5, 5, 5.5), (1, 2)),
        (crossing(4, 4, 4), (1,)),
        (crossing(2, 2, 2), (1,)),
        (crossing(4.5, 5, 5.5, above=False), ()),
        (dataclasses.replace(crossing(4, 4, 4), outcome="gpu_always"), (0,)),
        (dataclasses.replace(crossing(4, 4, 4), outcome="cpu_always"), (4,)),
        (always("cpu_always", at(2, "cpu_faster"), at(6, "cpu_faster"), at(8, "too_close")), (3, 4)),
        (always("cpu_always", at(2, "cpu_faster"), at(8, "cpu_faster")), (4,)),
        (always("gpu_always", at(2, "too_close"), at(4, "gpu_faster"), at(8, "gpu_faster")), (0, 1)),
        (always("gpu_always", at(2, "gpu_faster"), at(8, "gpu_faster")), (0,)),
        (dataclasses.replace(crossing(4, 4, 4), outcome="several"), ()),
        (dataclasses.replace(crossing(4, 4, 4), outcome="undecided"), None),
    ],
)
def test_a_crossing_fits_the_places_that_its_interval_reaches(found, fits):
    assert outcomes.crossover_outcome(found, PLACES).fits == fits


def test_rows_of_a_tutorial_fit_the_answer_of_their_crossing():
    found = outcomes.tutorial_outcome(PRESETS["signal"], measured("signal"), PAIR)
    assert found.fits is not None
    assert "faster" in found.fact
    always = outcomes.tutorial_outcome(PRESETS["signal"], measured("signal", gpu_s=1e-6), PAIR)
    assert always.fits == (0,)
    assert outcomes.tutorial_outcome(PRESETS["signal"], measured("signal"), ("cpu", "mps")) is None


@pytest.mark.parametrize(("times", "fits"), [(0.5, 0), (1.0, 1), (1.5, 2), (3.0, 3), (7.0, 4)])
def test_one_training_fits_the_answer_of_its_speedup(times, fits):
    run = rows.run({"cpu": 1e-3, "cuda:0": 1e-3 / times}, jitter=0.0)
    assert outcomes.tutorial_outcome(PRESETS["mnist-linear"], run, PAIR).fits == (fits,)


def test_cells_of_a_grid_that_differ_fit_several_answers():
    grid = [
        row
        for number, times in enumerate((1.5, 3.0))
        for row in rows.run({"cpu": 1e-3, "cuda:0": 1e-3 / times}, run_id=f"{number:012x}", jitter=0.0)
    ]
    found = outcomes.tutorial_outcome(PRESETS["fashion-cnn"], grid, PAIR)
    assert found.fits == (2, 3)
    assert "1.50× in the cell of the grid that gains least and 3.00×" in found.fact
    loaded = [rows.beside_programs(row) for row in grid]
    found = outcomes.tutorial_outcome(PRESETS["fashion-cnn"], loaded, PAIR)
    assert found.fact.startswith("On this machine under load, with other programs using about half of the processors")


@pytest.mark.parametrize(("no_drain", "fits"), [(0.3, 0), (1.0, 1), (1.8, 2)])
def test_a_clock_that_did_not_wait_is_judged_on_an_accelerator(no_drain, fits):
    found = outcomes.clock_outcome([exhibited.clock({"ours": 1.0, "no_drain": no_drain})])
    assert (found.fits, found.open) == ((fits,), (3,))


def test_on_a_cpu_nothing_is_queued_so_what_differs_is_noise():
    found = outcomes.clock_outcome([exhibited.exhibit()])
    assert found.fits == (1,), "the clock without a drain says half in this exhibit, by noise alone"
    assert "noise" in found.fact


def test_what_is_right_for_a_gpu_is_right_on_a_machine_without_one():
    found = outcomes.clock_outcome([exhibited.exhibit()])
    assert found.is_right(0)
    said = found.sentence(("too little", "the right time", "too much", "it depends"), 0)
    assert "Right for a GPU; this machine has none, so here it made no difference." in said
    assert "The measurement disagrees" not in said
    assert "The measurement disagrees" in found.sentence(("too little", "the right time", "too much", "it depends"), 2)


def test_a_module_is_moved_in_place_and_a_tensor_is_not():
    assert outcomes.moving_outcome([]) is None
    assert outcomes.moving_outcome([exhibited.exhibit(exhibited.MOVING)]).fits == (1,)


def test_the_loader_is_judged_by_its_share_of_the_parts():
    tutorial = Point(dataset="digits", model="linear", data_path="tutorial", epochs=2)
    row = rows.run(point=tutorial)[0]
    parts = dict.fromkeys(("transfer", "forward", "backward", "optimizer"), (1e-4,))
    parts = {f"breakdown_{name}_s": value for name, value in parts.items()}
    quick, slow = (dataclasses.replace(row, breakdown_loader_s=(s,), **parts) for s in (1e-6, 1e-1))
    assert [outcomes.loader_outcome([one]).fits for one in (quick, slow)] == [(0,), (3,)]
    assert outcomes.loader_outcome([]) is None


def test_learning_is_judged_item_by_item_and_by_the_margin():
    seeds = [row for seed in range(5) for row in rows.run(point=Point(seed=seed), run_id=f"{seed:012x}")]
    assert outcomes.learning_outcome(seeds, PAIR, 0.01).fits == (0,)
    apart = [
        dataclasses.replace(row, predictions=bytes([(row.predictions[0] + 1) % 10]) + row.predictions[1:])
        if row.contender == "cuda:0" and row.seed
        else row
        for row in seeds
    ]
    found = outcomes.learning_outcome(apart, PAIR, 0.01)
    assert 0 not in found.fits
    assert 3 in found.fits, "one seed is alike on every item, the others are not"
    assert outcomes.learning_outcome([], PAIR, 0.01) is None


@pytest.mark.parametrize(("longer", "fits"), [(1.2, 0), (5, 1), (50, 2), (256, 3)])
def test_a_larger_batch_is_judged_on_the_last_device(longer, fits):
    small, large = (
        rows.run({"cpu": 1e-3, "cuda:0": s}, point=Point(batch_size=batch), run_id=f"{batch:012x}", jitter=0.0)
        for batch, s in ((32, 1e-4), (64, 1e-4 * longer))
    )
    assert outcomes.batch_size_outcome([*small, *large]).fits == (fits,)
    assert outcomes.batch_size_outcome(small) is None


def test_rows_that_cannot_be_compared_say_why():
    def refuse():
        Contender.parse("cpu@x")

    found = outcomes.outcome_or_reason(refuse)
    assert found.fits is None
    assert "cpu@x" in found.fact
