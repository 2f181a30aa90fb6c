"""Studies of accelerators of other machines beside a sweep of this one, on Crossover."""

import dataclasses

import pytest

from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from pages.shared import queries
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import TIMES, alts, button, chart_data, control, table
from tests.ui.recordings import NAME, measured_here, record_study

COMPARE, CROSSOVER = "/compare", "/crossover"


# Crossover


def test_the_sizes_of_the_sweep_are_the_recorded_ones_and_only_the_cpu_is_measured(world, open_page):
    world.has(CPU)
    record_study(world)
    app = open_page(CROSSOVER, recorded=NAME)
    assert control(app, "contenders").value == ["cpu"]
    assert "Exactly this training was recorded at 5 sizes" in words(app)
    assert "adaptive" not in {toggle.key for toggle in app.toggle}
    checked(button(app, "Find the crossover").click().run())
    (job,) = world.queue.jobs()
    assert job.sweep.axes == (Axis(name="hidden_size", values=tuple(TIMES)),)
    assert list(map(str, job.sweep.contenders)) == ["cpu"]


def test_the_recorded_sizes_can_be_left_for_a_range(world, open_page):
    world.has(CPU)
    record_study(world)
    app = open_page(CROSSOVER, recorded=NAME, recorded_sizes="false", adaptive="false")
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs()[0].sweep.axes == (Axis.from_range("hidden_size", 16, 2_048),)


def test_another_training_than_the_recorded_one_is_offered_that(world, open_page):
    world.has(CPU)
    record_study(world, batch_size=32)
    app = open_page(CROSSOVER, recorded=NAME)
    said = words(app)
    assert "batch size 32 instead of 64 (5 sizes)" in said
    assert "recorded_sizes" not in {toggle.key for toggle in app.toggle}
    taken = next(found for found in app.button if found.label.startswith("Use batch size"))
    checked(taken.click().run())
    assert control(app, "batch_size").value == 32
    assert "Exactly this training was recorded at 5 sizes" in words(app)


ASKED = Sweep(
    point=Point(hidden_size=16),
    axes=(Axis(name="hidden_size", values=tuple(TIMES)),),
    contenders=(Contender(),),
)


def job_of(world, kept):
    running = world.run(ASKED)
    runs = tuple(dict.fromkeys(row.run_id for row in kept))
    running = dataclasses.replace(running, run_ids=runs, trial_ids=tuple(row.trial_id for row in kept))
    world.queue.report(running)
    return running


def said_of_two(app):
    return app.success[0].value.replace("\\", "")


def test_a_finished_sweep_of_the_cpu_has_the_crossover_of_two_machines(world, open_page):
    world.has(CPU)
    record_study(world)
    kept = world.keep(measured_here())
    job = world.end(job_of(world, kept), state="finished")
    app = open_page(CROSSOVER, job=job.id, recorded=NAME)
    assert "Two machines, not measured in turns: Test CPU (feedfa) and Other CPU (111111)" in said_of_two(app)
    assert "Hollow marks, dashed: NVIDIA Test GPU, recorded on Other CPU (111111)" in words(app)
    (chart,) = (alt for alt in alts(app) if alt.startswith("Time against"))
    assert "GPU recorded (NVIDIA Test GPU, 111111)" in set(chart_data(app, chart)["device"])
    assert list(table(app, "Verdict")["Hidden size"]) == list(TIMES)
    assert "Readings" in table(app, "Verdict")
    assert "recorded=NVIDIA" in words(app)


def test_while_it_is_measured_the_recorded_line_is_there_already(world, open_page):
    world.has(CPU)
    record_study(world)
    job = job_of(world, world.keep(measured_here(sizes=(16, 64, 256))))
    app = open_page(CROSSOVER, job=job.id, recorded=NAME)
    assert "**So far:**" in words(app)
    (chart,) = (alt for alt in alts(app) if alt.startswith("Time against"))
    drawn = chart_data(app, chart)
    sizes = {size for size, device in zip(drawn["size"], drawn["device"], strict=True) if "recorded" in str(device)}
    assert sizes == set(TIMES)


def test_a_stored_study_of_this_machine_meets_the_recording_too(world, open_page):
    world.has(CPU)
    record_study(world)
    world.keep(measured_here(contenders=("cpu@1", "cpu")))
    (study,) = [line for line in queries.list_study_lines() if line.challenger != "cuda:0"]
    app = open_page(CROSSOVER, study=study.id, recorded=NAME)
    assert "Beside a recorded accelerator" in words(app)
    assert "The GPU recorded (NVIDIA Test GPU, 111111) is faster than the CPU (Test CPU, 4 threads) from" in words(app)
    assert "Two machines, not measured in turns" in words(app)
    two = next(frame.value for frame in app.dataframe if "GPU recorded, against CPU" in frame.value)
    assert "GPU recorded, against 1 CPU thread" in two


def test_the_cost_basis_counts_for_two_machines_as_well(world, open_page):
    world.has(CPU)
    record_study(world)
    job = world.end(job_of(world, world.keep(measured_here())), state="finished")
    app = open_page(CROSSOVER, job=job.id, recorded=NAME, basis="cold_start")
    assert "Included (with start-up)" in words(app)


def test_a_sweep_of_the_cpu_alone_without_a_choice_says_that_there_is_nothing_to_compare(world, open_page):
    world.has(CPU)
    record_study(world)
    job = world.end(job_of(world, world.keep(measured_here())), state="finished")
    assert "nothing to compare yet" in words(open_page(CROSSOVER, job=job.id))


def test_a_recorded_study_of_another_training_is_named_and_never_drawn(world, open_page):
    world.has(CPU)
    record_study(world, batch_size=32)
    job = world.end(job_of(world, world.keep(measured_here())), state="finished")
    app = open_page(CROSSOVER, job=job.id, recorded=NAME)
    assert f"There is no recording of this training on {NAME}" in words(app)
    assert not alts(app)


@pytest.mark.parametrize("page", [COMPARE, CROSSOVER])
def test_the_choice_is_restored_by_the_link_of_either_page(world, open_page, page):
    world.has(CPU)
    record_study(world)
    assert control(open_page(page, recorded=NAME), "recorded").value == NAME


def test_marks_of_the_recording_are_hollow_and_of_another_shape(world, open_page):
    world.has(CPU)
    record_study(world)
    job = world.end(job_of(world, world.keep(measured_here())), state="finished")
    app = open_page(CROSSOVER, job=job.id, recorded=NAME)
    spec = next(chart.proto.spec for chart in app.get("vega_lite_chart") if chart.proto.alt.startswith("Time"))
    assert '"diamond"' in spec
    assert '"filled":false' in spec.replace(" ", "")


def test_the_speedup_of_two_machines_is_drawn_and_a_link_of_before_opens_their_fingerprints(world, open_page):
    world.has(CPU)
    record_study(world)
    job = world.end(job_of(world, world.keep(measured_here())), state="finished")
    asked = {"job": job.id, "recorded": NAME}
    assert "Speedup against size" in alts(open_page(CROSSOVER, **asked))
    app = open_page(CROSSOVER, **asked, recorded_speedup="true", fingerprints="true")
    assert "Speedup against size" in alts(app)
    assert "1" * 12 in list(table(app, "Recorded")["Recorded"])
