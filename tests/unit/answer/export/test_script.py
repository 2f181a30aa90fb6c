"""The script that repeats a run: the same training as ours, timed alike, and text of a row is only text in it."""

import ast
import dataclasses
import re
import runpy
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer.export import run_files
from core.errors import CrossoverError
from core.files.project import PROJECT
from core.measure import datasets, networks
from core.measure.boosting import BoostingTraining
from core.measure.training import Training
from core.question import custom
from core.question.catalog import DATASETS
from core.question.experiment import Contender, Point
from core.question.fields import DATA_PATHS, SIZE_AXES
from core.question.models import AXES, FAMILIES
from core.question.sweep import Axis, Sweep
from core.results.schema import Trial
from tests.rows import EXPERIMENT, run, trial

ALONE = ("cnn", "xgboost")
"""Models whose script is run in a process of its own: one for all, and one that brings in an OpenMP runtime."""

HOSTILE = '"""\nimport os; os.system("echo owned")\n#\\" \'\'\' {{ 7 }} {% raw %} {# \u2028 \\N{DASH} \\'


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("model", FAMILIES)
def test_every_training_gets_a_script_that_compiles(dataset, model):
    text = run_files.training_script(
        run({"cpu@1": 1e-3, "cpu@2": 5e-4}, point=Point(dataset=dataset, model=model), device="cpu")
    )
    compile(text, "script.py", "exec")
    assert not re.search(r"{{|{%|{#", text)
    assert "crossover" not in {name.split(".")[0] for name in _imported(text)}
    assert "core" not in _imported(text)


@pytest.fixture
def executed(tmp_path, monkeypatch, capsys):
    """What the script of some rows prints: in a process of its own or, as that takes seconds to begin, in this one."""

    def execute(rows, *arguments, alone=False):
        path = tmp_path / "script.py"
        path.write_text(run_files.training_script(rows), encoding="utf-8")
        if alone:
            command = [sys.executable, path.name, *arguments]
            return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        monkeypatch.setattr(sys, "argv", [path.name, *arguments])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    threads = torch.get_num_threads()
    yield execute
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "model", "data_path"),
    [
        ("digits", "cnn", "resident"),
        ("token-order", "lstm-cells", "resident"),
        ("digits", "transformer", "per_batch"),
        ("clicks", "mlp", "resident"),
        ("digits", "resnet", "resident"),
        ("disc", "doubling-mlp", "per_batch"),
        ("signal", "mlp", "loader"),
        ("signal", "xgboost", "per_batch"),
    ],
)
def test_it_trains_what_we_train_and_prints_its_times_beside_the_stored(executed, dataset, model, data_path):
    point = Point(
        dataset=dataset, model=model, samples=300, hidden_size=16, depth=2, batch_size=50, data_path=data_path, rounds=3
    )
    data = datasets.load_point_data(point)
    rows = [
        dataclasses.replace(row, dataset_hash=data.hash, threads=1)
        for row in run({"cpu@1": 1e-3, "cpu@2": 5e-4}, point=point, device="cpu")
    ]
    said = executed(rows, "--pairs", "2", alone=model in ALONE)
    assert "The data are the same" in said
    losses = [float(found) for found in re.findall(r"first step ([\d.]+)", said)]
    assert losses == pytest.approx([_first_loss(point, data)] * 2, rel=1e-4)
    table = said.splitlines()[-2:]
    assert [line.split()[0] for line in table] == ["cpu@1", "cpu@2"]
    assert [float(line.split()[1]) for line in table] == pytest.approx([1.0, 0.5], rel=0.05)  # what was stored
    assert all(float(line.split()[2]) > 0 for line in table)


STUDIES = {
    "depth": (Point(dataset="disc", samples=200, model="doubling-mlp", batch_size=50), tuple(range(2, 13))),
    "hidden_size": (Point(dataset="signal", samples=200, batch_size=50), (16, 64)),
    "width": (Point(dataset="digits", model="cnn", samples=200, batch_size=50), (2, 4)),
    "parameters": (Point(dataset="disc", samples=200, model="mlp", batch_size=50), (500, 5_000)),
    "batch_size": (Point(dataset="disc", samples=200, hidden_size=16), (10, 50)),
    "samples": (Point(dataset="disc", batch_size=50, hidden_size=16), (100, 200)),
    "heads": (
        Point(dataset="digits", model="transformer", samples=200, batch_size=50, hidden_size=8, depth=1),
        (2, 4),
    ),
    "sequence_length": (
        Point(dataset="token-order", model="transformer", samples=200, batch_size=50, hidden_size=8, depth=1),
        (5, 8),
    ),
    "embedding_rows": (Point(dataset="clicks", samples=200, batch_size=50, hidden_size=8, depth=1), (100, 1_000)),
    "rounds": (Point(dataset="disc", samples=200, model="xgboost"), (2, 4)),
    "leaves": (Point(dataset="disc", samples=200, model="lightgbm", rounds=3), (2, 4)),
}
"""Axis of every kind of study → a small training and sizes."""


def of_study(axis):
    """Rows of a study as a sweep along the axis would store them, baseline and challenger of each size in turn."""
    point, sizes = STUDIES[axis]
    swept = Sweep(point=point, axes=(Axis(name=axis, values=sizes),), contenders=(Contender(), Contender(threads=1)))
    return [
        dataclasses.replace(row, threads=1)
        for number, one in enumerate(swept.points)
        for row in run({"cpu@1": 1e-3, "cpu@2": 5e-4}, run_id=f"{number:012x}", point=one, device="cpu")
    ]


def test_there_is_a_study_of_every_kind():
    assert STUDIES.keys() == SIZE_AXES.keys() - set(custom.FIELDS)


FITS = ("rounds", "leaves")


@pytest.mark.parametrize("axis", FITS)
def test_the_script_of_a_study_of_fits_has_the_sizes_of_every_row(axis):
    rows, space = of_study(axis), {"__name__": "script"}
    exec(compile(run_files.training_script(rows), "script.py", "exec"), space)
    assert [getattr(one, axis) for one in space["RUNS"]] == list(STUDIES[axis][1])


@pytest.mark.parametrize("axis", [axis for axis in STUDIES if axis not in FITS])
def test_the_script_of_a_study_builds_the_network_of_every_row(axis):
    rows = of_study(axis)
    space = {"__name__": "script"}
    exec(compile(run_files.training_script(rows), "script.py", "exec"), space)
    built = [sum(values.numel() for values in space["network"](one).parameters()) for one in space["RUNS"]]
    assert built == [row.parameters for row in rows[::2]]
    assert len(set(built)) == (len(built) if axis in {*AXES, "parameters"} - {"heads"} else 1)
    assert [one.batch_size for one in space["RUNS"]] == [row.batch_size for row in rows[::2]]
    assert [one.samples for one in space["RUNS"]] == [row.samples for row in rows[::2]]


@pytest.mark.slow
def test_the_script_of_a_study_trains_every_size_and_says_which(executed):
    rows = of_study("depth")[:6]
    said = [f"depth {row.depth}: {row.parameters:,} parameters" for row in rows[::2]]
    assert [line for line in executed(rows, "--pairs", "1").splitlines() if " parameters" in line] == said


def test_runs_that_differ_in_more_than_a_size_get_no_script():
    rows = [*run(), *run(run_id="b" * 12, point=dataclasses.replace(EXPERIMENT.point, seed=7))]
    with pytest.raises(CrossoverError, match="more than one size"):
        run_files.training_script(rows)


def test_the_stored_values_and_the_fingerprint_stand_in_it():
    rows = run()
    text = run_files.training_script(rows)
    for row in rows:
        assert f"{row.step_s[0]:.6g}" in text
    for name in run_files.FINGERPRINT_COLUMNS:
        assert f"#   {name}: {getattr(rows[0], name)!r}" in text


def test_a_lane_that_is_not_plain_is_left_out_and_named():
    rows = [*run(), trial(contender="cpu@2+compiled")]
    text = run_files.training_script(rows)
    assert "Left out" in text
    assert "'cpu@2+compiled'" in text
    with pytest.raises(CrossoverError, match="the default loop"):
        run_files.training_script(rows[2:])


def test_what_cannot_be_repeated_says_why():
    with pytest.raises(CrossoverError, match="tutorials' loader"):
        run_files.training_script(run(point=Point(data_path="tutorial")))
    with pytest.raises(CrossoverError, match="does not offer"):
        run_files.training_script(run(dataset="unheard-of"))
    with pytest.raises(CrossoverError, match="the default loop"):
        run_files.training_script(run(pairs=0))
    assert "tutorial" in DATA_PATHS


TEXTS = ("run_id", "started_at", "cpu_name", "system", "python_version", "torch_version", "app_version", "app_commit")
TEXTS += ("omp_wait_policy", "machine_id", "device_name", "dataset_hash")


def test_no_text_of_a_row_leaves_its_comment_or_string():
    assert _shape(_with_texts(HOSTILE)) == _shape(run_files.training_script(run()))


@pytest.mark.slow
@settings(max_examples=50)
@given(text=st.text(max_size=40))
def test_nor_does_any_other_text(text):
    assert _shape(_with_texts(text)) == _shape(run_files.training_script(run()))


def _with_texts(text: str) -> str:
    return run_files.training_script([dataclasses.replace(row, **dict.fromkeys(TEXTS, text)) for row in run()])


def _shape(text: str) -> str:
    """The program without what its strings say."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _imported(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def _first_loss(point: Point, data: datasets.Data) -> float:
    """The first step as the measuring process trains it."""
    if point.is_fit:
        fits = BoostingTraining(point, data, "cpu")
        fits.advance(1)
        return fits.loss()
    host = torch.device("cpu")
    feed = datasets.make_feed(dataclasses.replace(point, data_path="resident"), data, data.train, host)
    training = Training(networks.build(point.network, point.seed), feed, learning_rate=point.learning_rate)
    training.advance(1)
    return training.read_losses()[0]


@pytest.mark.slow
def test_it_is_made_without_torch():
    code = "import core.answer.export.run_files, sys; print('torch' in sys.modules)"
    root = PROJECT
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout == "False\n"


def test_rows_are_told_apart_without_comparing_each_with_each(monkeypatch):
    rows = [row for number in range(50) for row in run({"cpu@1": 1e-3, "cpu@1+bf16": 1e-3}, run_id=f"{number:012x}")]
    monkeypatch.setattr(Trial, "__eq__", lambda *_: pytest.fail("rows were compared"))
    assert run_files.training_script(rows).count("'cpu@1'") == 50
