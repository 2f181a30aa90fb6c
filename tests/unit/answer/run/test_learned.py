"""Reports and agreement against scikit-learn and scipy on the labels that the rows were made from."""

import dataclasses
import math
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, classification_report

from core.answer import accuracy
from core.errors import InvalidValue, NotComparable
from core.question.catalog import dataset
from core.question.experiment import Experiment, Point
from core.results.schema import Trial
from tests.rows import trial

BINARY = Experiment(point=Point(dataset="disc"))


def examined(truth, predicted, contender="cpu", **changes) -> Trial:
    """A row whose model predicted these classes for test items with these true ones."""
    experiment = changes.get("experiment")
    classes = len(dataset(experiment.point.dataset if experiment else "digits").classes)
    counts = [0] * classes**2
    for label, answer in zip(truth, predicted, strict=True):
        counts[label * classes + answer] += 1
    values = {"confusion": tuple(counts), "predictions": bytes(predicted), "test_samples": len(truth)}
    return trial(contender=contender, **{**values, **changes})


def labels(seed: int, items: int, classes: int, wrong: float) -> tuple[list[int], list[int], list[int]]:
    """True labels and two sets of predictions that are often right."""
    draw = random.Random(seed)
    truth = [draw.randrange(classes) for _ in range(items)]
    first = [draw.randrange(classes) if draw.random() < wrong else label for label in truth]
    second = [draw.randrange(classes) if draw.random() < wrong else answer for answer in first]
    return truth, first, second


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), items=st.integers(1, 80), wrong=st.floats(0, 1))
@settings(deadline=None, max_examples=30)
def test_the_report_is_what_scikit_learn_says_of_the_real_labels(seed, items, wrong):
    truth, predicted, _ = labels(seed, items, 10, wrong)
    names = dataset("digits").classes
    arguments = {"labels": range(10), "target_names": names, "zero_division": 0}
    row = examined(truth, predicted)
    assert accuracy.classification(row) == classification_report(truth, predicted, output_dict=True, **arguments)
    assert accuracy.classification_text(row) == classification_report(truth, predicted, **arguments)
    assert accuracy.accuracy(row) == pytest.approx(accuracy_score(truth, predicted))


def test_classes_are_called_by_their_names():
    row = examined([0, 1, 1], [0, 1, 0], experiment=BINARY)
    report = accuracy.classification(row)
    assert report["outside"]["recall"] == 1
    assert report["inside"]["recall"] == 0.5
    assert accuracy.confusion_rows(row) == ((1, 0), (1, 1))


def test_a_model_that_was_not_tested_has_no_report_and_says_so():
    row = trial(outcome="diverged", confusion=(), predictions=b"")
    assert accuracy.classification(row) is None
    assert accuracy.accuracy(row) is None
    assert accuracy.confusion_rows(row) == ()
    assert "no classification report of the CPU" in accuracy.classification_text(row)
    assert accuracy.compare_predictions(row, trial(contender="cuda:0")) is None
    assert accuracy.compare_predictions(trial(), row) is None


def test_counts_of_another_number_of_classes_are_refused():
    with pytest.raises(InvalidValue, match=r"^confusion must be 100 counts for 10 classes"):
        accuracy.confusion_rows(trial(confusion=(1, 2, 3, 4)))


def test_predictions_that_all_agree_are_the_only_ones_called_so():
    truth, first, _ = labels(1, 360, 10, 0.1)
    found = accuracy.compare_predictions(examined(truth, first), examined(truth, first, "cuda:0"))
    assert found.sentence == "The CPU and the GPU gave the same prediction for all 360 test items."
    assert (found.disagreeing, found.items, found.difference, found.p_value) == (0, 360, 0, 1)
    assert found.low < 0 < found.high


def test_a_small_difference_is_not_detected_and_never_called_equal():
    truth = [0] * 360
    first, second = [0] * 350 + [1] * 10, [0] * 351 + [1] * 9
    sentence = accuracy.compare_predictions(examined(truth, first), examined(truth, second, "cuda:0")).sentence
    assert sentence.startswith("No difference detected: the CPU and the GPU disagree on 1 of 360 test items")
    assert "+0.28 percentage points" in sentence
    assert sentence.endswith("one run each cannot show that they are equal.")


def test_a_large_difference_is_detected_and_not_blamed_on_the_device():
    truth = [0] * 360
    worse = [1] * 60 + [0] * 300
    found = accuracy.compare_predictions(examined(truth, truth), examined(truth, worse, "cuda:0"))
    assert found.sentence.startswith("A difference was detected: the CPU and the GPU disagree on 60 of 360 test items")
    assert "-16.67 percentage points" in found.sentence
    assert "cannot show that the device caused it" in found.sentence
    assert found.low < found.difference < found.high < 0


@given(seed=st.integers(0, 2**32), items=st.integers(1, 300), wrong=st.floats(0, 0.6))
@settings(deadline=None, max_examples=60)
def test_with_two_classes_the_p_value_is_mcnemars_exact_one(seed, items, wrong):
    truth, first, second = labels(seed, items, 2, wrong)
    a, b = (examined(truth, seen, name, experiment=BINARY) for seen, name in ((first, "cpu"), (second, "cuda:0")))
    found = accuracy.compare_predictions(a, b)
    gained = sum(x != t == y for t, x, y in zip(truth, first, second, strict=True))
    lost = sum(x == t != y for t, x, y in zip(truth, first, second, strict=True))
    exact = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert found.disagreeing == gained + lost
    assert found.difference == pytest.approx((gained - lost) / items)
    assert found.p_value == pytest.approx(exact)


@given(seed=st.integers(0, 2**32), items=st.integers(1, 200), wrong=st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_with_more_classes_the_p_value_is_never_too_low(seed, items, wrong):
    truth, first, second = labels(seed, items, 10, wrong)
    found = accuracy.compare_predictions(examined(truth, first), examined(truth, second, "cuda:0"))
    gained = sum(x != t == y for t, x, y in zip(truth, first, second, strict=True))
    lost = sum(x == t != y for t, x, y in zip(truth, first, second, strict=True))
    exact = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert found.p_value >= exact - 1e-12
    assert found.low <= (gained - lost) / (items + 2) <= found.high
    if found.disagreeing:
        assert not re.search(r"\b(same|identical)\b", found.sentence)


def test_the_interval_is_bonett_and_prices_adjusted_wald():
    truth = [0] * 100
    first, second = [1] * 9 + [0] * 91, [0] * 9 + [1] * 1 + [0] * 90
    found = accuracy.compare_predictions(*(examined(truth, seen, experiment=BINARY) for seen in (first, second)))
    # 9 gained and 1 lost of 100: shares 10/102 and 2/102, 8/102 ± 1.96 × sqrt((12/102 - (8/102)²) / 102).
    assert (found.low, found.high) == (pytest.approx(0.01362, abs=1e-4), pytest.approx(0.14325, abs=1e-4))


def test_trainings_of_different_length_are_refused_with_both_numbers():
    a, b = trial(steps=1_900), trial(contender="cuda:0", steps=950)
    with pytest.raises(NotComparable, match=r"training took 1,900 steps on the CPU, but 950 on the GPU\."):
        accuracy.compare_predictions(a, b)


def test_trainings_of_different_length_are_compared_where_both_were_tested_and_that_is_said():
    a, b = trial(steps=1_400, tested_step=950), trial(contender="cuda:0", steps=950)
    assert "tested after 950 of 1,900 steps." in accuracy.compare_predictions(a, b).sentence
    whole = trial(steps=1_900), trial(contender="cuda:0", steps=2_500)
    assert "tested after" not in accuracy.compare_predictions(*whole).sentence


def test_blocks_timed_beyond_the_last_epoch_are_not_part_of_what_was_learned():
    a, b = trial(steps=1_900), trial(contender="cuda:0", steps=2_500)
    assert accuracy.final_tested_step(b) == 1_900
    assert accuracy.compare_predictions(a, b).disagreeing == 0


def test_other_data_or_another_number_of_test_items_is_refused():
    with pytest.raises(NotComparable, match="its dataset hash is '0'"):
        accuracy.compare_predictions(trial(), trial(contender="cuda:0", dataset_hash="0"))
    with pytest.raises(NotComparable, match="but 3 of the GPU"):
        accuracy.compare_predictions(trial(), trial(contender="cuda:0", predictions=b"123"))


@pytest.mark.parametrize("disagreeing", [0, 1, 2, 7, 100, 1_001])
def test_the_p_value_is_that_of_whole_numbers(disagreeing):
    for gained in {0, min(1, disagreeing), disagreeing // 3, disagreeing}:
        discordant = accuracy._discordant(disagreeing, gained)
        ways = sum(math.comb(discordant, chosen) for chosen in range((discordant - gained) // 2 + 1))
        assert accuracy._mcnemar(disagreeing, gained) == pytest.approx(min(1.0, 2 * ways / 2**discordant), rel=1e-9)


def test_counts_and_predictions_that_contradict_each_other_are_not_compared():
    a = trial()
    other = [0] * 100
    other[1] = 270
    with pytest.raises(NotComparable, match="by their counts the CPU and the CPU differ on 255 items"):
        accuracy.compare_predictions(a, dataclasses.replace(a, confusion=tuple(other)))


def test_a_million_disagreements_take_no_more_terms_than_a_float_can_tell(monkeypatch):
    asked = []
    monkeypatch.setattr(accuracy, "range", lambda *ends: (asked.append(at) or at for at in range(*ends)), raising=False)
    assert accuracy._mcnemar(1_000_000, 0) == pytest.approx(1.0, rel=1e-6)
    assert accuracy._mcnemar(1_000_000, 2_000) == pytest.approx(0.0455, rel=1e-2)
    assert len(asked) < 20_000
