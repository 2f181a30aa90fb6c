"""Accelerators of other machines beside a run of this one, on Compare."""

from core.question.experiment import Point
from pages.shared import controls, custom_files, queries
from tests import rows
from tests.own_trainings import PLAIN
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import TIMES, alts, button, chart_data, control, drawn, table
from tests.ui.recordings import AWAY, NAME, measured_here, record_study

LIVE = "a" * 12


def record(world, point=controls.DEFAULTS, run_id="b" * 12, **changes):
    """A run of the CPU and the GPU of another machine, as if imported."""
    trials = rows.run({"cpu": 1e-3, "cuda:0": 2.5e-4}, point=point, run_id=run_id, **{**AWAY, **changes})
    return world.ship(trials)


# Compare


def test_without_recordings_the_page_says_so_and_how_to_import_some(world, open_page):
    world.has(CPU)
    said = words(open_page())
    assert "No accelerator has been recorded for this training" in said
    assert "python -m core store import rows.parquet" in said


def test_where_there_is_an_accelerator_nothing_is_missed_without_recordings(world, open_page):
    world.has(CPU, GPU)
    assert "No accelerator has been recorded" not in words(open_page())


def test_recorded_accelerators_are_offered_with_how_many_rows_and_whether_they_did_this_training(world, open_page):
    world.has(CPU)
    record(world)
    record(world, run_id="c" * 12, machine_id="2" * 12, device_name="Other GPU", point=Point(hidden_size=256))
    app = open_page(stock="true")
    assert control(app, "recorded").value is None
    assert control(app, "devices").value == ["cpu@1", "cpu@4"]
    listed = table(app, "Accelerator").sort_values("Accelerator")
    assert list(listed["Accelerator"]) == [NAME, "Other GPU (222222)"]
    assert list(listed["Rows"]) == [1, 1]
    assert list(listed["This configuration"]) == ["yes", "no"]
    assert listed["Nearest"].iloc[1] == "hidden size 256 instead of 128"


def test_accelerators_of_this_machine_are_not_offered_as_recorded_ones(world, open_page):
    world.has(CPU, GPU)
    world.keep(rows.run(point=controls.DEFAULTS))
    app = open_page()
    assert "recorded" not in {box.key for box in app.selectbox}


def test_beside_a_recorded_accelerator_only_the_cpu_is_asked_for(world, open_page):
    world.has(CPU)
    record(world)
    app = open_page(recorded=NAME)
    assert control(app, "recorded").value == NAME
    assert control(app, "devices").value == ["cpu"]
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert list(map(str, job.experiment.contenders)) == ["cpu"]


def test_one_that_is_chosen_is_back_once_a_training_of_ones_own_is_no_longer(world, open_page, tmp_path, monkeypatch):
    world.has(CPU)
    record(world)
    (tmp_path / "mine.py").write_text(PLAIN)
    monkeypatch.setenv(custom_files.TRAINING_VARIABLE, str(tmp_path / "mine.py"))
    app = open_page(recorded=NAME)
    checked(control(app, "training").set_value("mine.py:build").run())
    assert "recorded" not in drawn(app)
    assert control(app, "devices").value == ["cpu@1", "cpu@4"]
    checked(control(app, "training").set_value("").run())
    assert control(app, "recorded").value == NAME
    assert control(app, "devices").value == ["cpu"]


def test_choosing_one_on_the_page_puts_it_into_the_link(world, open_page):
    world.has(CPU)
    record(world)
    app = open_page(hidden_size="128")
    checked(control(app, "recorded").set_value(NAME).run())
    assert control(app, "recorded").value == NAME
    assert "Exactly this training was recorded" in words(app)


def test_between_sizes_that_both_machines_timed_a_size_is_expected_before_it_is_measured(world, open_page):
    world.has(CPU)
    record_study(world)
    assert "expected from" not in words(open_page(recorded=NAME, hidden_size="100"))
    world.keep(measured_here())
    before = len(queries.open_store().trials())
    app = open_page(recorded=NAME, hidden_size="100")
    said = words(app)
    assert f"expected from {len(TIMES)} measured sizes" in said
    assert "at a hidden size of 100: about " in said
    assert any(alt.startswith("Speedup against hidden size: measured sizes, and what is expected") for alt in alts(app))
    assert len(queries.open_store().trials()) == before
    assert "expected from" not in words(open_page(recorded=NAME, hidden_size="16384"))


def test_a_run_is_shown_beside_the_recording_as_of_two_machines(world, open_page):
    world.has(CPU)
    record(world)
    world.keep(rows.run({"cpu": 1e-3}, point=controls.DEFAULTS, run_id=LIVE))
    app = open_page(run=LIVE, recorded=NAME, fingerprints="true")
    said = words(app)
    assert "The recorded GPU is" in said
    assert "CPU (Test CPU, 4 threads) on Test CPU (feedfa)" in said
    assert "the interval does not include how much a machine varies from one run to the next" in said
    assert "Two machines. Recorded, dashed: NVIDIA Test GPU on Other CPU (111111)" in said
    shown = "GPU recorded, 111111"
    assert list(table(app, "Step")["Device"]) == ["CPU", shown]
    assert set(chart_data(app, "Time of each epoch by device")["contender"]) == {"CPU", shown}
    assert f"Confusion matrix of {shown}" in alts(app)
    fingerprints = table(app, "Recorded")
    assert dict(zip(fingerprints.iloc[:, 0], fingerprints["Recorded"], strict=True))["Machine"] == "1" * 12
    assert "recorded=NVIDIA" in said
    bars = chart_data(app, "Time of a step by device")["contender"]
    assert "GPU recorded, 111111" in set(bars), set(bars)


def test_the_rows_to_take_along_are_those_of_this_machine_alone(world, open_page):
    world.has(CPU)
    record(world)
    world.keep(rows.run({"cpu": 1e-3}, point=controls.DEFAULTS, run_id=LIVE))
    app = open_page(run=LIVE, recorded=NAME)
    assert any(found.label.startswith("Row") for found in app.get("download_button"))
    assert {trial.run_id for trial in world.store.trials()} == {LIVE}


def test_on_a_machine_with_an_accelerator_the_recorded_card_meets_it_too(world, open_page):
    world.has(CPU, GPU)
    record(world, device_name="Other GPU")
    world.keep(rows.run(point=controls.DEFAULTS, run_id=LIVE))
    app = open_page(run=LIVE, recorded="Other GPU (111111)")
    said = words(app)
    assert "## The recorded GPU is" in said
    assert "## The recorded GPU and the GPU are equally fast" in said
    assert "## The GPU is" in said


def test_a_recording_of_other_settings_is_named_and_never_drawn(world, open_page):
    world.has(CPU)
    record(world, point=Point(hidden_size=256))
    world.keep(rows.run({"cpu": 1e-3}, point=controls.DEFAULTS, run_id=LIVE))
    app = open_page(run=LIVE, recorded=NAME)
    said = words(app)
    assert f"There is no recording of this training on {NAME}" in said
    assert "hidden size 256 instead of 128" in said
    assert "× faster than" not in said
    assert list(table(app, "Step")["Device"]) == ["CPU"]


def test_the_settings_of_the_nearest_recording_can_be_taken_over(world, open_page):
    world.has(CPU)
    record(world, point=Point(hidden_size=300, learning_rate=0.03))
    app = open_page(recorded=NAME)
    taken = next(found for found in app.button if found.label.startswith("Use hidden size"))
    checked(taken.click().run())
    assert (control(app, "hidden_size").value, control(app, "learning_rate").value) == (300, 0.03)
    assert "Exactly this training was recorded" in words(app)


def test_recordings_of_another_protocol_are_refused_in_a_sentence(world, open_page):
    world.has(CPU)
    record(world, protocol_version=99)
    said = words(open_page(recorded=NAME))
    assert "Recordings of this training with another protocol version exist too, but are never compared" in said


def test_a_recorded_lane_is_offered_under_a_name_of_its_own(world, open_page):
    world.has(CPU)
    record(world)
    world.ship(rows.run({"cuda:0+graph10": 5e-5}, point=controls.DEFAULTS, run_id="d" * 12, **AWAY))
    listed = table(open_page(stock="true"), "Accelerator")
    assert set(listed["Accelerator"]) == {NAME, "NVIDIA Test GPU, CUDA graph of 10 steps (111111)"}


def test_a_link_to_an_accelerator_that_is_not_here_says_so(world, open_page):
    world.has(CPU)
    record(world)
    app = open_page(recorded="Toaster (999999)")
    assert "is recorded here: there are NVIDIA Test GPU (111111)." in words(app)
    assert control(app, "recorded").value is None


def test_what_a_recorded_row_says_is_never_markup(world, open_page):
    world.has(CPU)
    evil = "![x](http://evil.example/x.png) <b>:red[bold]</b> $x$"
    record(world, device_name=evil, cpu_name=evil)
    world.keep(rows.run({"cpu": 1e-3}, point=controls.DEFAULTS, run_id=LIVE))
    app = open_page(run=LIVE, recorded=f"{evil} (111111)")
    assert "The recorded GPU is" in words(app)
    for kind in ("markdown", "caption", "warning", "info"):
        for element in getattr(app, kind):
            assert "](http" not in element.value
            assert "<b>" not in element.value
            assert ":red[" not in element.value
