"""A training of one's own on one thread against two: what is known of it, and what is said where it fails."""

import sys

import pytest
import torch

from core.answer import custom_findings
from core.answer import custom_findings as answers
from core.errors import CustomTrainingFailed
from core.measure import devices
from core.measure.custom.training import CustomTraining
from core.measure.custom.user_code import load_builder
from core.results import parquet
from tests.own_trainings import FUNCTION, PLAIN, asked, changed
from tests.rows import trial

pytestmark = pytest.mark.slow

LOADER = """
import time
class Slow(list):
    def __iter__(self):
        for one in list.__iter__(self):
            time.sleep(0.01)
            yield one
"""
SLOW = LOADER + PLAIN.replace("self.batches = list", "self.batches = Slow")


def test_what_it_gives_is_known_and_its_blocks_are_timed_as_any(own):
    rows = own(PLAIN, contenders=("cpu@1", "cpu@2"), budget_s=300)
    assert [row.contender for row in rows] == ["cpu@1", "cpu@2"]
    for row in rows:
        assert (row.outcome, row.message, len(row.block_steps), row.size) == ("timed", "", 2, 8)
        assert (row.parameters, row.flops_per_step) == (8 * 21 + 2 * 9, 12345)
        assert row.own_learns is True
        assert row.own_evaluation == 0.75
        assert row.loss[0] == row.own_first_loss
        assert row.breakdown_loader_s
        assert row.breakdown_transfer_s
        assert row.breakdown_step_s
        assert min(row.own_operations) > 5
        assert not any((*row.own_waits, *row.own_copies, *row.own_elsewhere, *row.own_float64))
        assert row.startup_build_s
        assert row.startup_first_step_s
        assert parquet.find_refusal(row) == ""
        assert not custom_findings.grows(row.own_kept)
    assert rows[0].own_first_loss == rows[1].own_first_loss
    assert answers.first_losses_sentence(rows) == ""


def test_of_a_function_alone_nothing_else_is_known_or_guessed(own):
    for row in own(FUNCTION):
        assert row.outcome == "timed"
        assert (row.parameters, row.flops_per_step, row.loss, row.own_learns) == (0, 0, (), None)
        assert (row.own_first_loss, row.own_evaluation) == (None, None)
        assert row.breakdown_loader_s == row.breakdown_transfer_s == ()
        assert row.breakdown_step_s


def test_thread_counts_are_tried_on_a_training_that_is_thrown_away(own):
    (row,) = own(PLAIN, contenders=("cpu",))
    assert row.threads in row.threads_tried or row.threads_tried == ()
    assert row.block_first_step[0] < row.steps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(step="loss_of_step = float(batch[0].sum())"), "each step reads values or sizes 1 time, most often at"),
        (changed(step="print(batch[0].sum())"), "prints"),
        (changed(build="torch.set_default_dtype(torch.float64)"), "float64"),
        (PLAIN.replace("lr=0.1", "lr=0.0"), "trains nothing"),
        (changed(step="self.kept = getattr(self, 'kept', []); self.kept.append(torch.ones(2))"), "grows"),
        (changed(step="torch.set_num_threads(2)"), "number of threads"),
        (SLOW, "waiting for the next batch"),
    ],
    ids=["item", "print", "float64", "learns-nothing", "grows", "threads", "slow-loader"],
)  # fmt: skip
def test_what_is_odd_about_its_steps_is_said_in_a_sentence(own, text, said):
    rows = own(text, budget_s=300)
    sentences = [
        *(sentence for row in rows for sentence in answers.finding_sentences(row)),
        answers.first_losses_sentence(rows),
    ]
    assert any(said in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def build(size, device):\n    raise ValueError('no size')\n", "ValueError: no size"),
        (changed(step="raise KeyError('batch')"), "KeyError: 'batch'"),
        (changed(step="import sys; sys.exit(3)"), "SystemExit: 3"),
        (changed(place="raise KeyboardInterrupt"), "KeyboardInterrupt"),
        ("def build(:\n", "SyntaxError"),
        ("import nowhere_at_all\n", "nowhere_at_all"),
        ("def other(size, device): ...\n", "no function build; it has other."),
        ("from math import sqrt\nbuild = 3\n", "no function build."),
        ("def build(size): ...\n", "positional argument"),
        ("def build(size, device): return 7\n", "neither a function"),
        (changed(__init__="self.step = None"), "neither a function"),
        (
            PLAIN.replace("self.batches = list(zip(samples.split(64), labels.split(64)))", "self.batches = []"),
            "are empty",
        ),
        (
            PLAIN.replace("self.batches = list(zip(samples.split(64), labels.split(64)))", "self.batches = iter([])"),
            "are empty",
        ),
        (PLAIN.replace("self.batches = list(", "self.batches = iter(["), "SyntaxError"),
    ],
)
def test_an_error_is_told_with_its_own_traceback_from_its_file_on(own, text, said):
    with pytest.raises(CustomTrainingFailed) as error:
        own(text)
    told = str(error.value)
    assert said in told
    assert "core/measure" not in told
    if "Traceback" in told:
        assert told.splitlines()[2].startswith('  File "')
        assert "mine_" in told.splitlines()[2] or "positional" in said


def test_memory_that_cannot_be_had_ends_one_contender_and_is_an_outcome(own):
    rows = own(changed(step="self.all = torch.empty(2**60)"))
    assert [row.outcome for row in rows] == ["out_of_memory"]


def test_what_fails_only_afterwards_costs_no_block(own):
    rows = own(changed(evaluate="raise ArithmeticError('not now')"))
    assert all(len(row.block_steps) == 2 for row in rows)
    assert all("Its evaluation is unknown: ArithmeticError: not now" in row.message for row in rows)


def test_megabytes_of_print_go_nowhere_and_are_counted(own, capfd):
    rows = own(changed(step="print('x' * 10_000); import sys; print('y' * 10_000, file=sys.stderr)"))
    assert rows[0].own_printed > 2 * rows[0].block_steps[0]
    written = capfd.readouterr()
    assert len(written.out + written.err) < 10_000


@pytest.mark.parametrize(
    ("line", "alike"),
    [("torch.manual_seed(99)", True), ("torch.set_default_dtype(torch.float16)", True), ("torch.seed()", False)],
)
@pytest.mark.usefixtures("own")
def test_each_build_begins_with_the_settings_of_a_fresh_process(tmp_path, line, alike):
    file = tmp_path / f"mine_{len(line)}.py"
    file.write_text(
        PLAIN.replace("    return Own(size, device)", f"    own = Own(size, device)\n    {line}\n    return own")
    )
    if not alike:
        file.write_text(changed(__init__=line))
    point = asked(file).point
    foreign, build = load_builder(str(tmp_path), point.training, point.source_hash)
    losses = []
    for _ in range(2):
        training = CustomTraining(build(8, torch.device("cpu")), foreign)
        training.advance(1)
        losses += training.read_losses()
    assert (losses[0] == losses[1]) is alike
    said = answers.first_losses_sentence([trial(own_first_loss=loss) for loss in (0.7, 0.7 if alike else 0.9)])
    assert ("random numbers" in said) is not alike


def test_a_file_that_was_changed_since_it_was_asked_for_is_not_run(own, tmp_path):
    file = tmp_path / "mine_changed.py"
    file.write_text(PLAIN)
    question = asked(file)
    file.write_text("import os; os._exit(9)\n")
    with pytest.raises(CustomTrainingFailed, match="changed since"):
        load_builder(question.folder, question.point.training, question.point.source_hash)
    assert "mine_changed" not in sys.modules


def test_files_of_its_folder_are_imported_as_from_there(own, tmp_path):
    (tmp_path / "mine_parts.py").write_text("WIDTH = 3\n")
    (tmp_path / "numbers.txt").write_text("5\n")
    rows = own(
        changed(build="import mine_parts; import pathlib; assert int(pathlib.Path('numbers.txt').read_text()) == 5")
    )
    assert rows[0].outcome == "timed"
    assert torch.get_default_dtype() == torch.float32


# Arithmetic as the script sets it

SETS = """
import torch
SEEN = []
def build(size, device):
    {setting}
    weight = torch.zeros(size, device=device, requires_grad=True)
    def step():
        SEEN.append(({getter}))
        ((weight - 1) ** 2).sum().backward()
        weight.grad = None
    return step
"""
GETTER = "torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision"


@pytest.mark.parametrize(
    ("setting", "getter", "seen", "host"),
    [
        ("pass", GETTER, ("none", "tf32"), "ieee"),
        ("torch.set_float32_matmul_precision('high')", GETTER, ("tf32", "tf32"), "tf32"),
        ("torch.set_float32_matmul_precision('high')", "torch.get_float32_matmul_precision()", "high", "tf32"),
        ("torch.backends.fp32_precision = 'tf32'", GETTER, ("tf32", "tf32"), "tf32"),
        ("torch.backends.cudnn.conv.fp32_precision = 'ieee'", GETTER, ("none", "ieee"), "ieee"),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", GETTER, ("tf32", "tf32"), "ieee"),
    ],
)
def test_a_script_computes_in_every_step_as_its_build_set_it(own, setting, getter, seen, host):
    """Also where the settings are PyTorch's present ones, of which the older getters raise."""
    before = set(sys.modules)
    rows = own(SETS.format(setting=setting, getter=getter), contenders=("cpu@1", "cpu@2"))
    (module,) = (sys.modules[name] for name in set(sys.modules) - before if name.startswith("mine_"))
    assert set(module.SEEN) == {seen}
    assert len(module.SEEN) > 10
    assert {(row.outcome, row.fp32_precision) for row in rows} == {("timed", host)}


def test_what_holds_on_a_gpu_is_said_for_each_kind_of_operation_where_they_differ():
    assert devices.PYTORCH_FP32.describe(on_host=False) == "matmul ieee, convolution tf32, recurrent tf32"
    assert devices.TF32.describe(on_host=False) == "tf32"
    assert devices.Fp32Precision().describe(on_host=False) == devices.Fp32Precision().describe(on_host=True) == "ieee"
