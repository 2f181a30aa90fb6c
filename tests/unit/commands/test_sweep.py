"""`sweep`: what it prints, from the store and from a job, and how it ends. Jobs are told by hand."""

import dataclasses

import pytest

from core.commands import run
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import Queue
from core.progress import ContenderProgress, Progress, SweepProgress
from core.question.experiment import Point
from core.results import environment
from core.results.environment import DeviceInfo
from core.results.store import Store
from tests import rows
from tests.unit.commands.stored import CROSSING, SIZES, fill, measured, sweep

pytestmark = pytest.mark.slow

VALUES = ("--axis", "hidden_size", "--values", ",".join(map(str, SIZES)))
DEVICES = ("--devices", "cpu,cuda:0")
NOTES = ("Hidden size 1,024 did not fit into the memory of cuda:0.", "The interval is narrow.")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def job(monkeypatch):
    """Lets a job that is told by hand stand for the measuring process; returns what was submitted."""
    submitted = []

    def play(rows, *, state="finished", message="", missing=(), interrupted=False):
        def submit(self, asked, store, *, fresh=False, quiet_s=0.0):
            submitted.append((asked, fresh))
            return Job(id="1", question=asked, store=store.folder, fresh=fresh, created_at="")

        def follow(queue, job_id, on_change):
            now = Job(id=job_id, question=submitted[-1][0], store=Store("x").folder, fresh=False, created_at="")
            on_change(now)
            for done in range(3):
                contenders = (ContenderProgress(contender="cpu", steps=1, total_steps=2),)
                seen = SweepProgress(
                    done=done, total=3, size_label="hidden size 64", remaining_s=90.0 - done, notes=NOTES[:done]
                )
                progress = Progress(phase="training", contenders=contenders, sweep=seen)
                now = dataclasses.replace(now, state="running", progress=progress)
                on_change(now)
            if interrupted:
                raise KeyboardInterrupt
            now = dataclasses.replace(now, state=state, message=message, missing=missing)
            on_change(now)
            return now

        def stop(queue, job_id):
            return Job(
                id=job_id,
                question=submitted[-1][0],
                store=Store("x").folder,
                fresh=False,
                created_at="",
                state="stopped",
            )

        monkeypatch.setattr(Queue, "submit", submit)
        monkeypatch.setattr(run, "require_devices", lambda contenders, queue: None)  # which this machine may lack
        monkeypatch.setattr(client, "follow_job", follow)
        monkeypatch.setattr(client, "stop", stop)
        monkeypatch.setattr(client, "load_job_rows", lambda queue, job: rows)
        return submitted

    return play


def test_a_sweep_that_is_stored_is_answered_at_once(command, folder):
    fill(Store(folder), measured(sweep()))
    done = command("sweep", *VALUES, *DEVICES, "--store", folder)
    assert done.status == 0
    assert done.err == f"Answered from {folder}: every point is stored. Use --fresh to measure again.\n"
    assert done.out == command("crossover", "--store", folder).out


def test_a_sweep_that_lost_a_row_says_so_and_shows_the_others(command, folder, job):
    lost = "The row of cuda:0 was refused: its column busy_step_s has a negative value."
    job(measured(sweep()), message=lost, missing=(lost,))
    done = command("sweep", *VALUES, *DEVICES, "--store", folder)
    assert done.status == 1
    assert lost in done.err
    assert "GPU" in done.out


def test_a_run_that_lost_a_row_says_so_and_shows_the_others(command, folder, job):
    lost = "cuda:0+graph10 failed: RuntimeError: operation not permitted when stream is capturing."
    job(rows.run(), message=lost, missing=(lost,))
    done = command("run", "--devices", "cpu,cuda:0,cuda:0+graph10", "--store", folder)
    assert done.status == 1
    assert lost in done.err
    assert "GPU" in done.out
    job(rows.run())
    assert command("run", "--devices", "cpu,cuda:0", "--store", folder).status == 0


def test_the_document_has_points_notes_and_the_answer(command, folder):
    fill(Store(folder), measured(sweep()))
    document = command("sweep", *VALUES, *DEVICES, "--store", folder, "--json").json
    assert [point["hidden_size"] for point in document["points"]] == list(SIZES)
    assert {len(point["trials"]) for point in document["points"]} == {2}
    assert (document["state"], document["from_store"], document["notes"]) == ("finished", True, [])
    (answer,) = document["crossovers"]
    assert answer["outcome"] == "crossing"
    assert answer["low"] <= CROSSING <= answer["high"]


def test_an_adaptive_sweep_that_needs_no_further_size_is_answered_at_once(command, folder):
    fill(Store(folder), measured(sweep()))
    done = command("sweep", *VALUES, *DEVICES, "--adaptive", "--store", folder, "--json")
    assert done.status == 0
    assert done.json["from_store"] is True


def test_a_single_point_that_is_missing_is_measured(command, folder, job):
    rows = measured(sweep())
    fill(Store(folder), rows[2:])
    submitted = job(rows)
    done = command("sweep", *VALUES, *DEVICES, "--store", folder, "--json")
    ((asked, fresh),) = submitted
    assert (asked, fresh) == (sweep(), False)
    assert done.json["from_store"] is False


def test_fresh_measures_what_is_stored(command, folder, job):
    fill(Store(folder), measured(sweep()))
    submitted = job(measured(sweep(), prefix="f"))
    command("sweep", *VALUES, *DEVICES, "--store", folder, "--fresh")
    assert [fresh for _, fresh in submitted] == [True]


def test_progress_and_notes_are_on_stderr_and_each_note_is_said_once(command, folder, job):
    job(measured(sweep()))
    done = command("sweep", *VALUES, *DEVICES, "--store", folder)
    assert "1 of 3 points, hidden size 64: training, about 1 min 29 s left" in done.err
    assert "waiting, place" in done.err
    assert [done.err.count(note) for note in NOTES] == [1, 1]
    assert "points" not in done.out


def test_a_note_that_the_job_ends_with_is_said_once(command, folder, job):
    job(measured(sweep()), message=NOTES[-1])
    assert command("sweep", *VALUES, *DEVICES, "--store", folder).err.count(NOTES[-1]) == 1


@pytest.mark.parametrize(("state", "status"), [("finished", 0), ("failed", 1), ("crashed", 1), ("stopped", 1)])
def test_the_status_says_whether_the_job_ended_well_and_what_was_measured_is_shown(command, folder, job, state, status):
    job(measured(sweep())[:6], state=state, message="That is why.")
    done = command("sweep", *VALUES, *DEVICES, "--store", folder, "--json")
    assert (done.status, done.json["state"], len(done.json["points"])) == (status, state, 3)
    assert done.json["notes"] == list(NOTES)
    assert done.err.count("That is why.") == 1


def test_an_interrupt_stops_the_job_and_shows_what_was_measured(command, folder, job):
    job(measured(sweep())[:4], interrupted=True)
    done = command("sweep", *VALUES, *DEVICES, "--store", folder, "--json")
    assert (done.status, done.json["state"], len(done.json["points"])) == (1, "stopped", 2)


def test_a_job_without_rows_prints_its_reason_only(command, folder, job):
    job([], state="failed", message="The device cuda:0 is not on this machine.")
    done = command("sweep", *VALUES, *DEVICES, "--store", folder)
    assert (done.status, done.out) == (1, "")
    assert "The device cuda:0 is not on this machine." in done.err


def test_a_grid_is_a_table_by_epoch_time(command, folder):
    wide = [
        row
        for number, batch in enumerate((32, 64))
        for row in measured(sweep(values=(16, 256), point=Point(batch_size=batch)), prefix=str(number + 1))
    ]
    fill(Store(folder), wide)
    words = ("--axis", "hidden_size=16,256", "--axis", "batch_size=32,64", *DEVICES)
    done = command("sweep", *words, "--store", folder)
    lines = done.out.splitlines()
    assert lines[0].split() == ["hidden", "size", "batch", "size", "device", "epoch", "step", "speedup"]
    # half the batches halve the epoch; the small model is fast on the CPU, the large one slow
    order = [tuple(line.split()[:3]) for line in lines[1:9]]
    assert order[0] == ("16", "64", "CPU")
    assert order[-1] == ("256", "32", "CPU")
    assert len(set(order)) == 8
    assert lines[10].startswith("With batch size 32: ")
    assert lines[12].startswith("With batch size 64: ")
    document = command("sweep", *words, "--store", folder, "--json").json
    assert {(one["axis"], *one["held"].items()) for one in document["crossovers"]} == {
        ("hidden_size", ("batch_size", 32)),
        ("hidden_size", ("batch_size", 64)),
        ("batch_size", ("hidden_size", 16)),
        ("batch_size", ("hidden_size", 256)),
    }
    assert [(point["hidden_size"], point["batch_size"]) for point in document["points"]] == [
        (16, 32),
        (16, 64),
        (256, 32),
        (256, 64),
    ]


def test_one_device_alone_has_times_and_no_crossover(command, folder):
    fill(Store(folder), measured(sweep(contenders=("cpu",))))
    done = command("sweep", *VALUES, "--devices", "cpu", "--store", folder)
    assert done.out.splitlines()[0].split() == ["hidden", "size", "device", "epoch", "step", "speedup"]
    assert command("sweep", *VALUES, "--devices", "cpu", "--store", folder, "--json").json["crossovers"] == []


@pytest.mark.parametrize(
    ("accelerators", "expected"), [((), ["cpu@1", "cpu@{cores}"]), (("cuda:0", "cuda:1"), ["cpu", "cuda:0"])]
)
def test_without_an_accelerator_one_thread_contends_with_all(command, folder, job, monkeypatch, accelerators, expected):
    here = environment.read_environment()
    devices = tuple(
        DeviceInfo(device=name, kind=name[:4].rstrip(":"), name="Test", memory_bytes=1)
        for name in ("cpu", *accelerators)
    )
    monkeypatch.setattr(run, "require_machine", lambda queue: Machine(environment=here, devices=devices))
    monkeypatch.setattr(environment, "read_environment", lambda: dataclasses.replace(here, cores_usable=6))
    submitted = job([])
    command("sweep", *VALUES, "--store", folder)
    assert [str(entry) for entry in submitted[0][0].contenders] == [name.format(cores=6) for name in expected]


def test_each_contender_is_set_against_the_first_and_not_against_the_others(command, folder):
    fill(Store(folder), measured(sweep(contenders=("cpu", "cuda:0", "cuda:1"))))
    done = command("sweep", *VALUES, "--devices", "cpu,cuda:0,cuda:1", "--store", folder, "--json")
    said = sorted((one["baseline"].split(",")[0], one["challenger"]) for one in done.json["crossovers"])
    assert said == [("CPU (Test CPU", "GPU (NVIDIA Test GPU)"), ("CPU (Test CPU", "GPU 1 (NVIDIA Test GPU)")]


@pytest.mark.parametrize("form", [(), ("--adaptive",)])
def test_the_accelerator_may_be_named_first(command, folder, form):
    fill(Store(folder), measured(sweep(contenders=("cuda:0", "cpu"))))
    done = command("sweep", *VALUES, "--devices", "cuda:0,cpu", *form, "--store", folder, "--json")
    assert done.json["from_store"] is True
    assert done.json["crossovers"][0]["baseline"].startswith("CPU")


def with_checked_lanes(trials):
    """The rows, those of lanes with losses that agree with plain ones."""
    losses = {"lane_loss": (2.3, 2.2), "reference_loss": (2.3, 2.2)}
    return [dataclasses.replace(row, **losses) if "+" in row.contender else row for row in trials]


def test_a_sweep_with_lanes_also_says_where_the_best_lanes_cross(command, folder):
    asked = sweep(contenders=("cpu", "cuda:0", "cuda:0+graph10"))

    def seconds(contender, size):
        return 5e-4 if "graph" in contender else 1e-3 * (1.0 if contender == "cuda:0" else (size / CROSSING) ** 0.5)

    fill(Store(folder), with_checked_lanes(measured(asked, seconds=seconds)))
    words = (*VALUES, "--devices", "cpu,cuda:0,cuda:0+graph10", "--store", folder)
    (found,) = command("sweep", *words, "--json").json["best_against_best"]
    crossovers = command("sweep", *words, "--json").json["crossovers"]
    plain = next(one for one in crossovers if "CUDA graph" not in one["challenger"])
    assert found["estimate"] < plain["estimate"]
    assert found["lanes"]["16"] == ["cuda:0+graph10", "cpu"]
    out = command("sweep", *words).out
    assert "Best variants: The GPU with its best variant is faster than the CPU with its best variant from" in out
