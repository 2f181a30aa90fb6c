"""`choose` predicts from stored rows and measures nothing; `crossover rule` is read by others without this package."""

import ast
import importlib.util
import json
import sys

import pytest

import core
from core.files.project import PROJECT
from core.question.experiment import Point
from core.results.store import Store
from tests.unit.commands.stored import fill, measured, sweep

READER = PROJECT / "examples" / "rule" / "choose_device.py"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def choose_device():
    spec = importlib.util.spec_from_file_location("choose_device", READER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.choose_device


def test_a_recorded_machine_answers_for_each_card_with_the_break_even_first(command):
    words = ("choose", "--preset", "disc", "--depth", "11", "--gpu", "v100,t4", "--price", "cpu=0.20,gpu=0.79")
    done = command(*words, "--store", PROJECT / "data" / "gallery", "--machine", "207fa2ff040b")
    assert (done.status, done.err) == (0, "")
    first, second = done.out.split("\n\n")
    for text, name in ((first, "NVIDIA V100"), (second, "NVIDIA T4")):
        assert text.startswith("At these prices the GPU must be 3.95× as fast as the CPU to be cheaper.")
        assert f"{name} is predicted" in text


def test_what_cannot_be_told_is_an_answer_too(command, folder):
    done = command("choose", "--preset", "disc", "--depth", "9", "--gpu", "v100", "--store", folder, "--json")
    assert (done.status, done.out) == (1, "")  # there is no such folder
    fill(Store(folder), measured(sweep()))
    done = command("choose", "--preset", "disc", "--depth", "9", "--gpu", "v100,mps", "--store", folder, "--json")
    assert (done.status, done.err) == (0, "")
    found = [choice["answer"] for choice in done.json["choices"]]
    assert found == ["cannot_tell", "not_covered"]
    assert "The CPU was not measured at this size" in done.json["choices"][0]["sentences"][0]
    assert done.json["training"]["depth"] == 9


def test_an_unknown_card_is_refused_with_status_2(command, folder):
    fill(Store(folder), measured(sweep()))
    done = command("choose", "--gpu", "gtx-9000", "--store", folder)
    assert done.status == 2
    assert "v100" in done.err


def test_notebooks_have_the_same_function(folder):
    fill(Store(folder), measured(sweep()))
    (made,) = core.choose(Point(hidden_size=16), "v100", core.Store(folder).trials())
    assert made.prediction.cpu_s > 0
    assert made.prediction.step_s.low > 0


def rule(command, folder, *words):
    fill(Store(folder), measured(sweep(), torch_version="2.14.1+cu130"))
    done = command("crossover", "rule", "--axis", "hidden_size", "--store", folder, "--json", *words)
    assert (done.status, done.err) == (0, "")
    return done.json


def test_a_rule_has_interval_basis_fingerprint_and_version(command, folder):
    found = rule(command, folder)
    assert (found["rule"], found["version"], found["axis"], found["basis"]) == ("crossover", 1, "hidden_size", "steady")
    assert (found["below"], found["above"]) == ("cpu", "cuda:0")
    assert found["sizes"] == [16, 1_024]
    assert 16 < found["low"] < found["estimate"] < found["high"] < 1_024
    assert found["fingerprint"].keys() == {"machine_id", "cpu", "cores", "system", "device", "torch"}


def test_others_read_a_rule_without_this_package(command, folder, tmp_path, choose_device, monkeypatch):
    found, path = rule(command, folder), tmp_path / "rule.json"
    import os
    import platform

    here = {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}
    found["fingerprint"] |= here
    path.write_text(json.dumps(found))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert choose_device(path, 16) == ("cpu", f"Measured: {found['sentence']}")
    assert choose_device(path, 1_024)[0] == "cuda:0"
    assert "Either may be faster" in choose_device(path, found["estimate"])[1]
    assert "was not measured" in choose_device(path, 1e6)[1]
    assert choose_device(path, 16, device="cuda:1") == ("cuda:1", "You chose it.")
    path.write_text(json.dumps(found | {"fingerprint": found["fingerprint"] | {"cores": 999}}))
    assert choose_device(path, 1_024) == (
        "cpu", "The rule was measured on another machine: cores 999. Measure it here.",
    )  # fmt: skip
    path.write_text(json.dumps(found | {"version": 2}))
    assert "Version 2" in choose_device(path, 1_024)[1]
    path.write_text("{}")
    assert choose_device(path, 1_024)[0] == "cpu"
    assert choose_device(tmp_path / "missing.json", 1_024)[0] == "cpu"


def test_the_reader_is_short_and_needs_the_standard_library_alone():
    text = READER.read_text()
    assert len(text.splitlines()) <= 50
    nodes = list(ast.walk(ast.parse(text)))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_a_rule_is_of_this_machine(command, folder):
    fill(Store(folder), measured(sweep(), machine_id="0123456789ab"))
    done = command("crossover", "rule", "--store", folder, "--json")
    assert (done.status, done.out) == (1, "")
