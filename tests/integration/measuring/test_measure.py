"""What real measurements on the CPU measure, and what they learn."""

import dataclasses
import itertools
import subprocess
import sys

import pytest
import torch

from core.answer.speedup import TRAINING_COLUMNS, require_equal
from core.errors import NotComparable
from core.files.project import PROJECT
from core.measure import datasets, devices, preflight, trial
from core.measure.trial import Hooks, measure
from core.progress import Progress
from core.question import catalog, models
from core.question.experiment import Experiment, Point
from core.question.fields import DATA_PATHS
from core.results.schema import Trial
from tests import idx
from tests.integration.measuring.runs import BEST, ONE, TWO, run, small, two_cores


@pytest.fixture
def images(tmp_path, monkeypatch):
    for loader in ("MNIST", "FashionMNIST"):
        idx.write(tmp_path, loader=loader)
    monkeypatch.setattr(datasets, "DATASETS_FOLDER", tmp_path)


WIDELY = dict.fromkeys(("linear", "doubling-mlp", "cnn"), ("disc", "signal", "digits", "mnist", "fashion-mnist"))
ONCE = [model for model, facts in models.FAMILIES.items() if model not in {"mlp", *WIDELY} and not facts.library]
TRAINED = [
    *((name, "mlp") for name in catalog.DATASETS),
    *((name, model) for model, names in WIDELY.items() for name in names),
    *(("digits", model) for model in ONCE),
]
"""One model on every data set, every network on one; that each fits each is told by its facts, in the unit tests."""


@pytest.mark.parametrize(("dataset", "model"), TRAINED)
def test_every_model_trains_on_every_data_set(images, dataset, model):
    samples = min(300, catalog.DATASETS[dataset].max_samples)
    (row,) = run(
        small(dataset=dataset, samples=samples, model=model, depth=1 if model in ONCE else 2, width=1, epochs=40)
    )
    assert row.outcome == "completed"
    assert row.parameters == sum(p.numel() for p in _module(row).parameters())
    assert min(row.loss[-20:]) < 0.98 * row.loss[0]
    assert sum(row.confusion) == row.test_samples == len(row.predictions)


@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet"])
def test_float64_begins_where_float32_does_and_is_another_training(model):
    rows = [run(small(model=model, width=1, epochs=1, dtype=dtype))[0] for dtype in ("float32", "float64")]
    assert [row.dtype for row in rows] == ["float32", "float64"]
    assert rows[1].loss[0] == pytest.approx(rows[0].loss[0], rel=1e-4)
    assert rows[1].dataset_hash == rows[0].dataset_hash
    assert rows[1].parameters == rows[0].parameters
    with pytest.raises(NotComparable, match="number format"):
        require_equal(rows[0], rows[1], TRAINING_COLUMNS)


@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet"])
def test_a_batch_of_one_sample_trains_every_sample_of_an_epoch(model):
    (row,) = run(small(model=model, samples=100, batch_size=1, width=1, epochs=1, learning_rate=0.01))
    assert (row.outcome, row.steps_per_epoch) == ("completed", 100)
    assert row.loss_step[-1] == 100
    assert len(row.predictions) == row.test_samples


def _module(row: Trial) -> torch.nn.Module:
    from core.measure import networks

    fields = {field.name: getattr(row, field.name) for field in dataclasses.fields(Point)}
    return networks.build(Point(**{k: v for k, v in fields.items() if k not in models.AXES or v}).network, seed=0)


@pytest.mark.parametrize("data_path", DATA_PATHS)
def test_every_data_path_learns_the_same(data_path):
    (row,) = run(small(data_path=data_path))
    (resident,) = run(small())
    assert row.loss == resident.loss
    assert row.predictions == resident.predictions


@two_cores
def test_contenders_share_weights_and_batches():
    one, two = run(small(hidden_size=200), ONE, TWO)
    assert one.loss == pytest.approx(two.loss, rel=1e-4)
    assert one.dataset_hash == two.dataset_hash


@two_cores
def test_blocks_alternate_never_overlap_and_their_order_varies(monkeypatch):
    monkeypatch.setattr(trial, "TARGET_PAIRS", 12)
    rows = run(small(), ONE, TWO)
    blocks = sorted(
        (begin, end, pair, row.contender)
        for row in rows
        for begin, end, pair in zip(row.block_begin_ns, row.block_end_ns, row.block_pair, strict=True)
    )
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(blocks))
    rounds = [[name for *_, pair, name in blocks if pair == number] for number in range(12)]
    assert all(sorted(names) == ["cpu@1", "cpu@2"] for names in rounds)
    assert len({tuple(names) for names in rounds}) == 2


@pytest.mark.parametrize(("enough_at", "pairs"), [(0, 3), (4, 5), (6, 8), (99, 10)])
def test_a_training_that_is_over_is_timed_on_until_it_says_enough_or_there_is_no_hope(monkeypatch, enough_at, pairs):
    monkeypatch.setattr(trial, "MOST_PAIRS", 10)
    monkeypatch.setattr(trial, "LOOKS", (5, 8, 10))
    (row,) = run(small(), enough=lambda rows: len(rows[0].block_pair) >= enough_at)
    assert row.outcome == "completed"
    assert len(row.block_pair) == pairs


def test_of_as_many_pairs_as_were_asked_for_nobody_asks_whether_they_are_enough():
    (row,) = run(small(), pairs=2, enough=lambda _: False)
    assert len(row.block_pair) == 2


def test_a_block_is_long_enough_and_its_lead_in_is_not_timed():
    (row,) = run(small())
    assert min(row.block_steps) >= 5
    gaps = [
        later - (first + steps)
        for first, steps, later in zip(row.block_first_step, row.block_steps, row.block_first_step[1:], strict=False)
    ]
    assert set(gaps) == {row.lead_in_steps}
    assert row.lead_in_steps >= 2


def test_the_weights_examined_are_those_after_the_last_epoch():
    """Timing goes on beyond it; what was learned must not."""
    (short,) = run(small(epochs=1, learning_rate=0.01))
    (again,) = run(small(epochs=1, learning_rate=0.01))
    (longer,) = run(small(epochs=200, learning_rate=0.01))
    assert short.steps > short.epochs * short.steps_per_epoch
    assert short.predictions == again.predictions
    assert short.predictions != longer.predictions
    assert (len(short.loss), short.loss_step[-1]) == (6, 6)


def test_the_best_thread_count_is_tried_and_kept():
    (row,) = run(small(), BEST)
    assert row.threads_tried == preflight.candidate_threads()[: len(row.threads_tried)]
    times = dict(zip(row.threads_tried, row.threads_tried_step_s, strict=True))
    assert row.threads == (min(times, key=times.__getitem__) if times else 1)


def test_start_up_is_reported_apart_and_the_parts_of_a_step_are_there():
    (row,) = run(small())
    for part in ("device", "build", "transfer", "first_step"):
        assert getattr(row, f"startup_{part}_s") > 0
    lengths = {len(getattr(row, f"breakdown_{part}_s")) for part in ("loader", "forward", "backward", "optimizer")}
    assert lengths == {50}
    assert row.epoch_check_s is not None
    assert row.busy_step_s == ()


@pytest.mark.parametrize("epochs", [1, 10_000])
def test_who_wants_times_alone_gets_just_so_many_pairs_and_no_test(epochs):
    (row,) = run(small(epochs=epochs), pairs=2)
    assert (row.outcome, row.message, row.block_pair) == ("timed", "", (0, 1))
    assert row.breakdown_forward_s
    assert row.epoch_check_s is None
    assert (row.train_accuracy, row.validation_accuracy, row.confusion, row.predictions) == (None, None, (), b"")


def test_progress_shows_steps_losses_and_rounds():
    told: list[Progress] = []
    run(small(epochs=200), ONE, progress=told.append)
    last = [progress for progress in told if progress.phase == "training"][-1]
    assert "warming up 1 CPU thread" in {progress.phase for progress in told}
    (entry,) = last.contenders
    assert entry.contender == "cpu@1"
    assert 0 < entry.steps <= entry.total_steps == 1_200
    assert len(entry.losses) == len(entry.loss_steps) == len(entry.loss_seconds) > 10


def test_rows_are_given_away_while_it_runs_as_if_it_were_cut_off(monkeypatch):
    monkeypatch.setattr(trial, "KEEP_EVERY_S", 0.0)
    kept: list[list[Trial]] = []
    (whole,) = run(small(epochs=400), ONE, keep=kept.append)
    assert [len(row.block_pair) for (row,) in kept] == list(range(1, len(kept) + 1))
    for (row,) in kept:
        assert (row.outcome, row.run_id, row.trial_id) == ("interrupted", whole.run_id, whole.trial_id)
        assert row.block_begin_ns == whole.block_begin_ns[: len(row.block_begin_ns)]


def test_a_run_has_the_name_that_it_is_given():
    asked = Experiment(point=small(), contenders=(ONE,), pairs=2)
    (row,) = measure(asked, hooks=Hooks(), run_id="0123456789ab")
    assert (row.run_id, row.trial_id) == ("0123456789ab", "0123456789ab-0")


def test_tf32_is_off():
    run(small())
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cudnn.allow_tf32


def test_the_measuring_process_loads_no_second_openmp_runtime_and_no_user_interface():
    code = (
        "import sys\n"
        "from core.measure import trial\n"
        "from core.question.experiment import Experiment, Point\n"
        "trial.TARGET_PAIRS = 2\n"
        "trial.measure(Experiment(point=Point(samples=300)), hooks=trial.Hooks())\n"
        "print(sorted({'sklearn', 'pandas', 'altair', 'streamlit', 'scipy'} & set(sys.modules)))\n"
    )
    root = PROJECT
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_initialising_a_device_is_timed_once():
    assert devices.initialise("cpu") == devices.initialise("cpu") > 0
