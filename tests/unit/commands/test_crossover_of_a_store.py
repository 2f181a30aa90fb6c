"""`crossover` of a folder of results: the one study that the options leave, or the list of those that remain."""

import pytest

from core.answer.gallery import overview as gallery_table
from core.question.experiment import Point
from core.results.store import Store
from tests.unit.commands.stored import CROSSING, fill, measured, sweep

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def test_the_only_study_is_answered(command, folder):
    fill(Store(folder), measured(sweep()))
    done = command("crossover", "--store", folder, "--json")
    assert (done.status, done.err) == (0, "")
    document = done.json
    assert (document["outcome"], document["axis"], document["basis"]) == ("crossing", "hidden_size", "steady")
    assert document["low"] <= CROSSING <= document["high"]
    assert len(document["study"]) == 12
    assert len(document["sizes"]) == 7


def test_the_text_names_both_devices_every_size_and_the_basis(command, folder):
    fill(Store(folder), measured(sweep()))
    lines = command("crossover", "--store", folder, "--basis", "cold_start").out.splitlines()
    assert "Test GPU" in lines[0]
    assert lines[2].startswith("hidden size  CPU")
    assert len([line for line in lines if line[:1].isdigit()]) == 7
    assert any(line.startswith("Included (with start-up): ") for line in lines)


def test_several_studies_are_listed_and_each_can_be_chosen(command, folder):
    narrow, deep = measured(sweep()), measured(sweep("depth", (1, 2, 3), point=Point(hidden_size=64)), prefix="d")
    fill(Store(folder), narrow, deep)
    done = command("crossover", "--store", folder)
    assert (done.status, done.out) == (2, "")
    first, *listed = done.err.splitlines()
    assert first.startswith("2 studies are stored; choose one of them with --study")
    assert ["hidden size 16 to 1,024 (7 sizes)" in line for line in listed] == [True, False]
    assert "depth 1 to 3 (3 sizes)" in listed[1]
    for line in listed:
        chosen = line.split()[0]
        assert command("crossover", "--store", folder, "--study", chosen[:10], "--json").json["study"] == chosen
    assert command("crossover", "--store", folder, "--axis", "depth", "--json").json["axis"] == "depth"


def test_of_several_studies_those_that_are_decided_come_first(command, folder):
    many = sweep("depth", tuple(range(1, 9)), point=Point(hidden_size=64))
    fill(Store(folder), measured(many, seconds=lambda *_: 1e-3, prefix="d"), measured(sweep()))
    _, first, last = command("crossover", "--store", folder).err.splitlines()
    assert "hidden size 16 to 1,024" in first
    assert "depth 1 to 8" in last


@pytest.mark.parametrize(
    ("option", "left"), [(("--model", "mlp"), True), (("--dataset", "disc"), True), (("--machine", "feed"), True)]
)
def test_filters_leave_one_of_several(command, folder, option, left):
    disc = sweep("depth", (2, 4, 6, 8), point=Point(dataset="disc", model="doubling-mlp", batch_size=100, depth=2))
    elsewhere = measured(sweep(values=(16, 64, 256)), prefix="e", machine_id="feedfacecafe")
    sweeps = {
        "--model": [measured(disc, prefix="d"), measured(sweep())],
        "--dataset": [measured(disc, prefix="d"), measured(sweep())],
        "--machine": [measured(sweep()), elsewhere],
    }[option[0]]
    fill(Store(folder), *sweeps)
    assert command("crossover", "--store", folder).status == 2
    done = command("crossover", "--store", folder, *option, "--json")
    assert done.status == 0
    assert len(done.json["sizes"]) == {"--model": 7, "--dataset": 4, "--machine": 3}[option[0]]


def test_devices_choose_among_the_challengers(command, folder):
    fill(Store(folder), measured(sweep(contenders=("cpu", "cuda:0", "cuda:1"))))
    assert command("crossover", "--store", folder).status == 2
    done = command("crossover", "--store", folder, "--devices", "cpu,cuda:1", "--json")
    assert done.status == 0
    assert done.json["challenger"].startswith("GPU 1 (")
    assert command("crossover", "--store", folder, "--devices", "cpu,cuda", "--json").status == 0
    assert command("crossover", "--store", folder, "--devices", "cpu,mps").status == 1


def test_a_store_without_two_comparable_sizes_is_said_to_have_none(command, folder):
    folder.mkdir(exist_ok=True)
    empty = command("crossover", "--store", folder)
    assert (empty.status, empty.out) == (1, "")
    assert empty.err == f"{folder} has no two sizes that differ in nothing else.\n"
    fill(Store(folder), measured(sweep(values=(16,))))
    assert command("crossover", "--store", folder, "--model", "mlp").err.endswith(" with --model mlp.\n")


def test_parameters_are_looked_at_when_asked_for(command, folder):
    fill(Store(folder), measured(sweep()))
    document = command("crossover", "--store", folder, "--axis", "parameters", "--json").json
    assert document["axis"] == "parameters"
    assert document["sizes"][0]["size"] == Point(hidden_size=16).network.parameters


def test_a_file_that_is_skipped_is_named(command, folder):
    fill(Store(folder), measured(sweep()))
    (folder / "torn.parquet").write_bytes(b"PAR1 and no more")
    done = command("crossover", "--store", folder)
    assert done.status == 0
    assert "torn.parquet was skipped" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--axis", "neurons"), "--axis must be "), (("--devices", "cpu,gpu"), "--devices must be ")],
)
def test_words_that_it_does_not_know_are_a_usage_error(command, folder, arguments, words):
    fill(Store(folder), measured(sweep(values=(16, 32))))
    done = command("crossover", "--store", folder, *arguments)
    assert done.status == 2
    assert words in done.err


def test_of_very_many_trials_it_says_how_many_are_too_old_to_be_searched(command, folder, monkeypatch):
    monkeypatch.setattr(gallery_table, "MOST_TRIALS", 1)
    fill(Store(folder), measured(sweep()), measured(sweep("depth", (1, 2), point=Point(hidden_size=64)), prefix="d"))
    assert "trials are searched; " in command("crossover", "--store", folder).err


def test_sizes_are_answered_as_measured_interpolated_or_not_at_all(command, folder):
    fill(Store(folder), measured(sweep()))
    document = command("at", "--sizes", "16,40,700,5000", "--store", folder, "--json").json
    small, below, above, beyond = document["sizes"]
    assert [entry["basis"] for entry in document["sizes"]] == [
        "measured",
        "interpolated",
        "interpolated",
        "not measured",
    ]
    assert small["faster"].startswith("CPU")
    assert below["faster"] == small["faster"]
    assert "Test GPU" in above["faster"]
    assert above["low"] <= (700 / CROSSING) ** 0.5 <= above["high"]
    assert (beyond["faster"], beyond["speedup"], beyond["reason"]) == ("", None, "outside the measured sizes")
    lines = command("at", "--sizes", "16,40,700,5000", "--store", folder).out.splitlines()
    assert lines[0].split() == ["hidden", "size", "faster", "speedup", "95", "%", "interval", "basis"]
    assert len(lines) == 5


def test_a_size_at_the_crossing_is_inconclusive(command, folder):
    fill(Store(folder), measured(sweep()))
    (entry,) = command("at", "--sizes", str(CROSSING), "--store", folder, "--json").json["sizes"]
    assert (entry["faster"], entry["reason"]) == ("", "either could be faster")
    assert entry["low"] < 1 < entry["high"]


@pytest.mark.parametrize("sizes", ["", "64,", "0", "-3", "inf"])
def test_sizes_that_are_none_are_refused(command, folder, sizes):
    fill(Store(folder), measured(sweep()))
    done = command("at", f"--sizes={sizes}", "--store", folder)
    assert done.status == 2
    assert "sizes" in done.err
