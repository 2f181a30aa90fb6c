"""The command line as a script uses it: output, exit status, and the same queue as the pages."""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from core.answer import speedup
from core.answer.judgement import OUTCOMES
from core.files.project import PROJECT
from core.jobs import client
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Sweep
from core.results.store import Store
from tests import brief, objects

ONE = (Contender(threads=1),)
SMALL = ("--samples", "300", "--hidden-size", "8", "--depth", "1", "--epochs", "2")


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory):
    """An environment and its folder, where a worker serves already."""
    folder = tmp_path_factory.mktemp("command-line")
    variables = {"CROSSOVER_JOBS": str(folder / "jobs"), "CROSSOVER_LOCK": str(folder / "lock")}
    variables |= {"CROSSOVER_SHARED": str(folder / "caches"), **objects.KEYS}
    queue = Queue(folder / "jobs")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(client, "COMMAND", brief.COMMAND)
        client.ensure_worker(queue)
        yield {**os.environ}, folder
    queue.worker_file.dismiss()


@pytest.fixture
def command(surroundings):
    environment, _ = surroundings

    def call(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "core", *arguments],
            cwd=PROJECT,
            env={**environment, **changes},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return call


@pytest.fixture
def store(surroundings):
    _, folder = surroundings
    return str(folder / "store")


def test_devices_are_listed_as_json_with_versions(command):
    done = command("devices", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["devices"][0]["device"] == "cpu"
    assert document["environment"]["torch_version"]


def test_a_run_is_measured_stored_and_then_answered_from_the_store(command, store):
    first = command("run", *SMALL, "--devices", "cpu@1", "--store", store, "--json")
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    assert document["from_store"] is False
    (trial,) = document["trials"]
    assert trial["outcome"] == "completed"
    assert trial["step"]["blocks"] == 20
    assert first.stderr.strip(), "no phase of the run was shown"

    again = json.loads(command("run", *SMALL, "--devices", "cpu@1", "--store", store, "--json").stdout)
    assert (again["from_store"], again["run_id"]) == (True, document["run_id"])

    fresh = json.loads(command("run", *SMALL, "--devices", "cpu@1", "--store", store, "--json", "--fresh").stdout)
    assert fresh["from_store"] is False
    assert fresh["run_id"] != document["run_id"]


def test_a_run_for_people_names_device_time_and_report(command, store):
    done = command("run", *SMALL, "--devices", "cpu@1", "--store", store)
    assert done.returncode == 0
    assert "a step" in done.stdout
    assert "macro avg" in done.stdout
    assert "Use --fresh to measure again" in done.stderr


def test_a_sweep_is_measured_stored_and_then_answered_from_the_store_with_its_crossover(command, tmp_path):
    point = ("--samples", "300", "--depth", "1", "--epochs", "2", "--axis", "hidden_size", "--values", "4,8,16")
    arguments = ("sweep", *point, "--pairs", "2", "--devices", "cpu@1,cpu@2", "--store", str(tmp_path), "--json")
    first = command(*arguments)
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    assert [place["hidden_size"] for place in document["points"]] == [4, 8, 16]
    assert {len(place["trials"]) for place in document["points"]} == {2}
    assert "of 3 points, hidden size" in first.stderr
    (answer,) = document["crossovers"]
    assert answer["outcome"] in OUTCOMES
    assert (answer["estimate"] is None) == (answer["outcome"] != "crossing")
    assert len(Store(tmp_path).trials()) == 6

    sweep, rows = Sweep.from_json(document), Store(tmp_path).trials()
    answered = all(
        speedup.answers_experiment(
            sweep.experiment(point), [row for row in rows if row.hidden_size == point.hidden_size]
        )
        for point in sweep.points
    )
    again = json.loads(command(*arguments).stdout)
    assert (document["from_store"], again["from_store"]) == (False, answered), (
        "a busy machine's answer is measured again"
    )
    if answered:
        assert (again["points"], again["crossovers"]) == (document["points"], document["crossovers"])
    (answer,) = again["crossovers"]

    alone = json.loads(command("crossover", "--store", str(tmp_path), "--json").stdout)
    assert alone | {"held": {}} == answer


def test_a_store_at_an_address_takes_a_run_a_sweep_an_import_and_an_export(command, tmp_path):
    with objects.served() as server:
        there, other, file = server.address(), server.address(), tmp_path / "rows.parquet"
        run = command("run", *SMALL, "--devices", "cpu@1", "--store", there, "--json")
        assert run.returncode == 0, run.stderr
        again = command("run", *SMALL, "--devices", "cpu@1", "--store", there)
        assert f"Answered from {there}: measured" in again.stderr

        point = ("--samples", "300", "--depth", "1", "--epochs", "2", "--axis", "hidden_size", "--values", "4,8")
        sweep = command("sweep", *point, "--pairs", "2", "--devices", "cpu@1,cpu@2", "--store", there, "--json")
        assert sweep.returncode == 0, sweep.stderr
        assert command("store", "export", str(file), "--store", there).stdout.startswith("5 rows written")
        assert command("store", "import", str(file), "--store", other).stdout.startswith("5 rows added")
        assert command("store", "check", "--store", other).stdout.startswith(f"5 rows in {other}")
        assert json.loads(command("store", "check", "--store", other, "--json").stdout)["store"] == other


def test_a_sweep_of_a_device_that_is_not_there_is_a_usage_error(command, tmp_path):
    done = command("sweep", "--axis", "hidden_size=4,8", "--devices", "cpu,xpu:9", "--store", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "xpu:9 is not on this machine" in done.stderr


def test_two_hundred_thousand_timings_of_ones_own_are_answered(command, tmp_path):
    draw = random.Random(1)
    file = tmp_path / "mine.csv"
    lines = ["size,device,seconds"]
    for _ in range(100_000):
        size, noise = 2 ** draw.randrange(3, 13), draw.lognormvariate(0, 0.05)
        lines += [f"{size},cpu,{size * 1e-6 * noise:.9g}", f"{size},gpu,{300e-6 / noise:.9g}"]
    file.write_text("\n".join(lines))
    done = command("crossover", "--csv", str(file), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == "crossing"
    assert document["low"] <= 300 <= document["high"]
    assert sum(size["readings"] for size in document["sizes"]) == 100_000


def test_a_usage_error_is_the_exit_status_2_with_a_sentence(command):
    done = command("run", "--devices", "cpu", "--hidden-size", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert command("run", "--speed", "11").returncode == 2


def test_a_device_that_is_not_there_is_a_usage_error_and_is_never_replaced(command, store):
    done = command("run", *SMALL, "--devices", "cpu,xpu:9", "--store", store)
    assert done.returncode == 2
    assert "xpu:9 is not on this machine" in done.stderr
    assert done.stdout == ""


def test_a_store_that_is_no_folder_is_said_before_anything_runs(command, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    done = command("run", *SMALL, "--devices", "cpu", "--store", str(tmp_path / "file"))
    assert done.returncode == 1
    assert "file cannot be read: Not a directory." in done.stderr


def test_two_sessions_and_a_command_line_that_ask_at_once_are_measured_one_after_another(surroundings, store):
    """Checked from the stored clock readings, which share one clock on a machine."""
    environment, folder = surroundings
    arguments = ["run", *SMALL, "--devices", "cpu@1", "--store", store, "--seed", "3"]
    queue = Queue(folder / "jobs")
    sessions = [
        queue.submit(Experiment(point=Point(samples=300, epochs=2, seed=seed), contenders=ONE), Store(Path(store)))
        for seed in (1, 2)
    ]
    typed = subprocess.Popen(
        [sys.executable, "-m", "core", *arguments], cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL
    )
    ended = [client.follow_job(queue, job.id, lambda _: None) for job in sessions]
    assert typed.wait(timeout=200) == 0
    assert [job.state for job in ended] == ["finished", "finished"]
    spans = sorted(
        (row.block_begin_ns[0], row.block_end_ns[-1]) for row in Store(Path(store)).trials() if row.seed in (1, 2, 3)
    )
    assert len(spans) == 3
    assert all(earlier[1] < later[0] for earlier, later in itertools.pairwise(spans))
