import dataclasses
import subprocess
import sys

import pytest

from core.errors import DeviceUnavailable, InvalidValue
from core.files.project import PROJECT
from core.jobs import process
from core.jobs.machine import MachineUse, Serving, measurement_lock
from core.jobs.queue import Queue
from core.jobs.worker import __main__ as program
from core.jobs.worker import worker
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.worker import Code, MeasurementBackend, Worker, serve
from core.question.experiment import Contender, Experiment, Point
from core.results.environment import DeviceInfo
from tests.integration import scripted_worker
from tests.integration.scripted_worker import BROKEN, EMPTY, QUICK, REFUSED, UNTIL_RELEASED, experiment


@pytest.fixture
def code(tmp_path):
    return Code.scan(tmp_path / "code")


@pytest.fixture
def make_worker(queue, code):
    queue.folder.mkdir()

    def make(**changes) -> Worker:
        bench = dataclasses.replace(scripted_worker.bench(queue), **changes)
        return Worker(queue, bench, bench.survey(), code=code, idle_s=0.0)

    return make


def test_a_worker_takes_all_jobs_and_then_is_idle(queue, store, make_worker):
    submitted = [queue.submit(experiment(QUICK, width=width), store) for width in (8, 16)]
    assert make_worker().run() == "idle"
    for job in submitted:
        done = queue.job(job.id)
        assert (done.state, done.message, done.worker) == ("finished", "", process.current_process())
        assert [trial.trial_id for trial in store.trials(run_id=done.run_id)] == list(done.trial_ids)
        assert done.progress.pairs == 2


def test_devices_are_used_once_before_the_first_job_and_reported(queue, make_worker):
    used = []
    serving = make_worker(initialise=lambda device: used.append(device) or 0.5)
    assert queue.worker_file.machine.startup_s == {}
    serving.run()
    serving.run()
    assert used == ["cpu"]
    assert queue.worker_file.machine.startup_s == {"cpu": 0.5}


GPU = DeviceInfo(device="cuda:0", kind="cuda", name="Test GPU", memory_bytes=2**34, driver="")


def with_gpu(queue, make_worker, **changes):
    """A worker that finds a GPU, and the devices that it has used."""
    used = []
    serving = make_worker(initialise=lambda device: used.append(device) or 0.5, **changes)
    serving.machine = dataclasses.replace(serving.machine, devices=(*serving.machine.devices, GPU))
    return serving, used


def test_an_accelerator_is_first_used_when_a_job_names_it(queue, store, make_worker):
    serving, used = with_gpu(queue, make_worker)
    queue.submit(experiment(QUICK), store)
    serving.run()
    assert used == ["cpu"]
    contenders = (Contender(), Contender(device="cuda:0"))
    asked = dataclasses.replace(experiment(QUICK), contenders=contenders)
    for width in (8, 16):
        point = dataclasses.replace(asked.point, hidden_size=width)
        queue.submit(dataclasses.replace(asked, point=point), store)
        serving.run()
    assert used == ["cpu", "cuda:0"]
    assert queue.worker_file.machine.startup_s == {"cpu": 0.5, "cuda:0": 0.5}


def test_who_holds_an_accelerator_leaves_sooner(queue, store, make_worker):
    serving, _ = with_gpu(queue, make_worker)
    serving.idle_s = 0.0
    serving.run()
    serving.idle_s = 900.0
    assert serving.patience_s == 900.0
    queue.submit(dataclasses.replace(experiment(QUICK), contenders=(Contender(device="cuda:0"),)), store)
    serving.idle_s = 0.0
    serving.run()
    assert serving.patience_s == 0.0
    serving.idle_s = 900.0
    assert serving.patience_s == worker.HOLDING_IDLE_S < 900.0


def test_a_device_that_cannot_be_used_does_not_keep_the_worker_from_serving(queue, store, make_worker):
    def broken(device):
        raise RuntimeError("driver")

    job = queue.submit(experiment(QUICK), store)
    assert make_worker(initialise=broken).run() == "idle"
    assert queue.job(job.id).state == "finished"
    assert queue.worker_file.machine.startup_s == {}


def test_devices_are_not_touched_while_somebody_else_measures(queue, make_worker):
    used = []
    with measurement_lock():
        assert make_worker(initialise=lambda device: used.append(device) or 0.5).run() == "idle"
    assert used == []


BUSY = MachineUse(processors=1.0, share=0.5, load=1.0, programs=("ffmpeg",))


@pytest.fixture
def machine_use(monkeypatch):
    """Let the machine be as busy as a list says, look by look; its last entry stays. Returns reported phases."""
    phases, report = [], Reporter.progress

    def progress(reporter, now):
        phases.append(now.phase)
        report(reporter, now)

    def be(*uses):
        left = list(uses)
        meter = type("Meter", (), {"read": lambda _: left.pop(0) if len(left) > 1 else left[0]})
        monkeypatch.setattr(worker, "UseMeter", meter)
        monkeypatch.setattr(worker, "QUIET_LOOK_S", 0.0)
        monkeypatch.setattr(Reporter, "progress", progress)
        return phases

    return be


def test_a_job_that_waits_for_quiet_says_what_uses_the_machine_and_is_measured_once_it_is_quiet(
    queue, store, make_worker, machine_use
):
    phases = machine_use(BUSY, BUSY, MachineUse())
    job = queue.submit(experiment(QUICK), store, quiet_s=3_600)
    make_worker().run()
    said = "waiting for a quiet machine: other programs use about half of the processors (ffmpeg)"
    assert phases[:2] == [said, said]
    done = queue.job(job.id)
    assert (done.state, done.progress.note) == ("finished", "")


def test_a_machine_that_stays_busy_is_measured_anyway_and_the_report_says_so(queue, store, make_worker, machine_use):
    machine_use(BUSY)
    job = queue.submit(experiment(QUICK), store, quiet_s=0.01)
    make_worker().run()
    done = queue.job(job.id)
    assert done.state == "finished"
    assert done.progress.note == (
        "The machine was not quiet within 0.01 s, so the measurement starts anyway: other programs use about half of "
        "the processors (ffmpeg)."
    )


def test_a_page_that_anybody_may_see_names_no_programs(queue, store, make_worker, machine_use):
    phases = machine_use(BUSY, MachineUse())
    queue.submit(experiment(QUICK), store, quiet_s=60, asked_by="browser-1")
    make_worker().run()
    assert phases[0] == "waiting for a quiet machine: other programs use about half of the processors"


def test_a_job_that_does_not_ask_for_quiet_is_measured_at_once(queue, store, make_worker, machine_use):
    phases = machine_use(BUSY)
    queue.submit(experiment(QUICK), store)
    make_worker().run()
    assert not any("quiet" in phase for phase in phases)


def test_a_stop_ends_the_wait_for_a_quiet_machine(queue, store, make_worker, machine_use, monkeypatch):
    machine_use(BUSY)
    job = queue.submit(experiment(QUICK), store, quiet_s=3_600)
    monkeypatch.setattr(worker.UseMeter, "read", lambda _: (queue.files(job.id).request_stop(), BUSY)[1])
    make_worker().run()
    assert queue.job(job.id).state == "stopped"


def test_a_process_that_fitted_gradient_boosting_takes_no_other_job(queue, store, make_worker):
    asked = experiment(QUICK)
    point = dataclasses.replace(asked.point, model="hist-boosting", rounds=5, leaves=4)
    fit = queue.submit(dataclasses.replace(asked, point=point), store)
    following = queue.submit(asked, store)
    assert make_worker().run() == "renew"
    assert (queue.job(fit.id).state, queue.job(following.id).state) == ("finished", "queued")


def test_a_refused_experiment_fails_with_its_sentence_and_the_worker_goes_on(queue, store, make_worker):
    refused, following = queue.submit(experiment(REFUSED), store), queue.submit(experiment(QUICK), store)
    assert make_worker().run() == "idle"
    assert queue.job(refused.id).state == "failed"
    assert queue.job(refused.id).message == "The device cuda:7 is not on this machine."
    assert queue.job(following.id).state == "finished"


def test_a_bug_fails_its_job_saves_what_was_measured_and_calls_for_a_fresh_process(queue, store, make_worker):
    broken, following = queue.submit(experiment(BROKEN), store), queue.submit(experiment(QUICK), store)
    assert make_worker().run() == "renew"
    failed = queue.job(broken.id)
    assert failed.state == "failed"
    assert failed.message.startswith("Unexpected error in the measuring process: ZeroDivisionError: a bug")
    assert failed.message.endswith("Earlier measurements are saved.")
    assert {trial.outcome for trial in store.trials(run_id=failed.run_id)} == {"interrupted"}
    assert queue.job(following.id).state == "queued"


def test_a_bug_with_no_words_is_named_by_its_kind(queue, store, make_worker):
    def measure(experiment, record):
        raise KeyError

    job = queue.submit(experiment(QUICK), store)
    make_worker(measure=measure).run()
    assert "KeyError (" in queue.job(job.id).message


def test_a_measurement_without_rows_has_failed(queue, store, make_worker):
    job = queue.submit(experiment(EMPTY), store)
    make_worker().run()
    assert (queue.job(job.id).state, queue.job(job.id).message[:20]) == ("failed", "Nothing was measured")


def test_a_stopped_measurement_keeps_its_rows_and_is_measured_anew_when_asked_for_again(queue, store, make_worker):
    def stop_after_four(experiment, record):
        tell = record.progress

        def progress(now):
            tell(now)
            if now.pairs == 4:
                queue.request_stop(record.job.id)

        record.progress = progress
        return scripted_worker.bench(queue).measure(experiment, record)

    job = queue.submit(experiment(UNTIL_RELEASED), store)
    make_worker(measure=stop_after_four).run()
    stopped = queue.job(job.id)
    assert stopped.state == "stopped"
    assert stopped.message == "Stopped after 4 pairs; what was measured by then is saved."
    assert {trial.outcome for trial in store.trials(run_id=stopped.run_id)} == {"stopped"}

    again = queue.submit(experiment(UNTIL_RELEASED), store)
    (queue.folder / scripted_worker.RELEASE).touch()
    make_worker().run()
    done = queue.job(again.id)
    assert done.state == "finished"
    assert done.run_id != stopped.run_id
    assert {trial.outcome for trial in store.trials(run_id=done.run_id)} == {"completed"}


def test_changed_code_calls_for_a_fresh_process_before_the_next_job(queue, store, make_worker, code):
    job = queue.submit(experiment(QUICK), store)
    serving = make_worker()
    code.folder.mkdir()
    (code.folder / "changed.py").write_text("")
    assert code.changed
    assert serving.run() == "renew"
    assert queue.job(job.id).state == "queued"


def test_a_lock_that_cannot_be_opened_fails_the_job_with_a_sentence(queue, store, make_worker, monkeypatch, tmp_path):
    job = queue.submit(experiment(QUICK), store)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CROSSOVER_LOCK", str(tmp_path / "file" / "machine.lock"))
    make_worker().run()
    assert queue.job(job.id).state == "failed"
    assert "The lock of this machine" in queue.job(job.id).message


def test_a_worker_leaves_at_once_if_the_seat_is_taken(queue, caplog):
    queue.folder.mkdir()
    caplog.set_level("INFO")
    with queue.worker_file.lock():
        serve(queue, lambda: pytest.fail("it must not load anything"))
    assert "Another worker serves" in caplog.text


def test_a_worker_that_was_idle_leaves_an_empty_seat(queue, store, code):
    job = queue.submit(experiment(QUICK), store)
    serve(queue, lambda: scripted_worker.bench(queue), idle_s=0.0, code_folder=code.folder)
    assert queue.job(job.id).state == "finished"
    assert queue.worker_file.serving is None
    assert not queue.worker_file.locked


def test_a_worker_counts_the_starts_before_it_until_it_is_ready(queue, code):
    queue.folder.mkdir()
    queue.worker_file.take(Serving(process=process.current_process(), starts=2))
    seen = []

    def load():
        seen.append(queue.worker_file.serving)
        return scripted_worker.bench(queue)

    serve(queue, load, idle_s=0.0, code_folder=code.folder)
    assert [(serving.ready, serving.starts) for serving in seen] == [(False, 2)]


def test_jobs_fail_when_the_measuring_half_cannot_be_loaded(queue, store):
    def load() -> MeasurementBackend:
        raise ImportError("No module named 'torch'")

    job = queue.submit(experiment(QUICK), store)
    serve(queue, load)
    assert queue.job(job.id).state == "failed"
    assert "could not start: ImportError: No module named 'torch'" in queue.job(job.id).message
    assert queue.worker_file.serving is None


def test_a_job_that_arrives_while_the_worker_is_about_to_leave_is_still_served(queue, store, code, monkeypatch):
    late, leave = [], worker._leave

    def submit_first(*arguments, **choices):
        if not late:
            late.append(queue.submit(experiment(QUICK), store))
        return leave(*arguments, **choices)

    monkeypatch.setattr(worker, "_leave", submit_first)
    serve(queue, lambda: scripted_worker.bench(queue), idle_s=0.0, code_folder=code.folder)
    assert queue.job(late[0].id).state == "finished"


def test_a_worker_that_calls_for_a_fresh_process_leaves_the_seat_to_it(queue, store, code, monkeypatch):
    queue.submit(experiment(BROKEN), store)
    seats = []
    monkeypatch.setattr(
        worker.client, "ensure_worker", lambda it: seats.append((it.worker_file.is_served, it.worker_file.locked))
    )
    serve(queue, lambda: scripted_worker.bench(queue), idle_s=0.0, code_folder=code.folder)
    assert seats == [(False, False)]


def test_a_job_asked_to_stop_while_the_machine_is_busy_ends_without_being_measured(queue, store, make_worker):
    job = queue.submit(experiment(QUICK), store)
    queue.files(job.id).request_stop()
    with measurement_lock():
        make_worker(measure=lambda *_: pytest.fail("it must not measure")).run()
    assert queue.job(job.id).state == "stopped"


@pytest.mark.slow
def test_the_seat_is_taken_before_torch_is_imported():
    heavy = {"torch", "pandas", "sklearn", "streamlit", "altair"}
    look = f"import sys, core.jobs.worker.__main__, core.jobs.client; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", look], cwd=PROJECT, text=True).strip() == "[]"


def test_an_invalid_experiment_is_refused_with_the_sentence_of_the_error(queue, store, make_worker):
    def measure(experiment, record):
        raise InvalidValue("threads", 999, "at most the 4 this process may use")

    job = queue.submit(experiment(QUICK), store)
    make_worker(measure=measure).run()
    assert queue.job(job.id).message == "Threads must be at most the 4 this process may use (got 999)."


def test_the_command_line_names_the_folder_of_jobs(queue, store, monkeypatch):
    monkeypatch.setattr(program, "load_backend", lambda: scripted_worker.bench(queue))
    monkeypatch.setattr(program, "_offer_to_be_killed_first", lambda: None)  # for the process of the tests, for good
    monkeypatch.setattr(sys, "meta_path", sys.meta_path.copy())  # what the measuring process refuses, tests may import
    job = queue.submit(experiment(QUICK), store)
    program.run_worker(["--jobs", str(queue.folder), "--idle", "0"])
    assert queue.job(job.id).state == "finished"


def test_the_measuring_half_surveys_the_machine_and_refuses_a_device_that_is_not_there(queue, store):
    bench = program.load_backend()
    assert bench.survey().devices[0].device == "cpu"
    elsewhere = Experiment(point=Point(), contenders=(Contender(device="cuda:99"),))
    queue.submit(elsewhere, store)
    reporter = Reporter(queue, queue.claim(process.current_process()))
    for refuse in (
        bench.measure,
        lambda *asked: bench.begin(*asked).run_round(),
        lambda asked, _: bench.fit([asked], []),
    ):
        with pytest.raises(DeviceUnavailable, match="cuda:99"):
            refuse(elsewhere, reporter)


def test_a_worker_that_would_leave_waits_for_room_for_what_full_disks_refused(queue, store, make_worker, monkeypatch):
    job = queue.submit(experiment(QUICK), store)
    serving, waits, full = make_worker(), [], pytest.MonkeyPatch()

    def refuse(path, *_, **__):
        raise OSError(28, "No space left on device", str(path))

    def wait(seconds):
        if seconds != worker.SETTLE_EVERY_S:
            return
        waits.append(seconds)
        assert store.trials() == []
        assert Queue(queue.folder).job(job.id).state == "queued", "nothing of it could be written"
        full.undo()

    full.setattr("core.files.documents.write_atomically", refuse)
    monkeypatch.setattr(worker.time, "sleep", wait)
    assert serving.run() == "idle"
    assert len(waits) == 1
    assert not queue.is_disk_full
    assert Queue(queue.folder).job(job.id).state == "finished"
    assert len(store.trials()) == 2
