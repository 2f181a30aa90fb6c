"""Lanes on Compare and Crossover, and what would help under a result; the rows are made up."""

import dataclasses
import re

import pytest

from core.question import lanes
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep
from pages.shared import controls
from tests import rows
from tests.lanes import SIZES, laned, sweep
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import alts, button, control

COMPARE, CROSSOVER = "/compare", "/crossover"
HOST = dataclasses.replace(
    CPU,
    refusals={"graph": "only NVIDIA and AMD GPUs replay CUDA graphs", "tf32": "only NVIDIA GPUs compute in TF32"},
)
CARD = dataclasses.replace(GPU, refusals={"tf32": "TF32 needs an NVIDIA GPU of compute capability 8.0 or later"})
POINT = controls.DEFAULTS


def labels(app):
    return [found.label for found in app.button]


def submitted(world):
    (job,) = world.queue.jobs()
    return job.question


# The control


def test_lanes_of_this_machine_are_offered_and_the_others_named_with_their_reason(world, open_page):
    world.has(HOST)
    app = open_page()
    options = set(control(app, "lanes").options)
    assert _titles("compiled", "compiled10", "fused", "foreach", "bf16") <= options
    assert not _titles("graph", "graph10", "tf32", "channels_last") & options
    assert "CUDA graph of 10 steps, CUDA graph: only NVIDIA and AMD GPUs replay CUDA graphs" in words(app)
    assert control(app, "lanes").value == []


def test_lanes_follow_the_model_and_the_batch(world, open_page):
    world.has(HOST)
    app = open_page(dataset="fashion-mnist", model="cnn", batch_size="1000")
    assert _titles("channels_last", "micro250") <= set(control(app, "lanes").options)


def _titles(*words):
    return {lanes.Lane.parse([word]).title for word in words}


def test_every_chosen_device_is_measured_plainly_and_in_each_lane_that_it_has(world, open_page):
    world.has(HOST, CARD)
    app = open_page(lanes=["compiled10", "graph"])
    assert "Training on the CPU (CUDA graph) is not possible: only NVIDIA and AMD GPUs replay CUDA graphs." in words(
        app
    )
    checked(button(app, "Run").click().run())
    contenders = [str(contender) for contender in submitted(world).contenders]
    assert contenders == ["cpu", "cuda:0", "cpu+compiled10", "cuda:0+compiled10", "cuda:0+graph"]


def test_more_contenders_than_fit_into_a_run_get_one_sentence(world, open_page):
    world.has(HOST)
    app = open_page(lanes=["compiled", "compiled10", "fused", "foreach"])
    assert "fewer: with these devices they make 10 trainings to compare, and 8 fit into one run" in words(app)
    assert "(got 'compiled, 10 steps a call; compiled; fused optimizer; foreach optimizer')" in words(app)
    assert button(app, "Run").disabled


@pytest.mark.parametrize("page", [COMPARE, CROSSOVER])
def test_a_lane_of_a_link_that_is_none_gets_one_sentence(world, open_page, page):
    world.has(HOST)
    assert "(got 'warp')" in words(open_page(page, lanes=["warp"]))


def test_a_lane_of_a_link_that_no_button_offers_is_an_option(world, open_page):
    world.has(HOST, CARD)
    app = open_page(lanes=["graph5 fused"], devices=["cuda:0"])  # a plus typed by hand arrives as a space
    assert control(app, "lanes").value == ["graph5+fused"]
    app = open_page(CROSSOVER, contenders=["cpu@1", "cpu@1 compiled"])
    assert control(app, "contenders").value == ["cpu@1", "cpu@1+compiled"]


def test_a_micro_batch_that_does_not_divide_the_batch_is_refused_in_a_sentence(world, open_page):
    world.has(HOST)
    app = open_page(lanes=["micro48"], batch_size="64", devices=["cpu"])
    assert "Micro-batch must be" in words(app)


def test_contenders_with_lanes_are_restored_by_the_link_of_crossover(world, open_page):
    world.has(HOST)
    app = open_page(CROSSOVER, contenders=["cpu@1", "cpu@1+compiled"])
    assert control(app, "contenders").value == ["cpu@1", "cpu@1+compiled"]
    assert not button(app, "Find the crossover").disabled


# What would help


def lane_run(**changes):
    steps = {"cpu@1": 1e-3, "cpu@1+compiled10": 4e-4, "cpu@1+fused": 9.9e-4, "cpu@1+bf16": 5e-4}
    return laned(steps, point=POINT, losses={"cpu@1+bf16": (2.3, 2.21, 2.1)}, **changes)


def test_a_run_with_lanes_says_what_helps_and_has_no_box_for_each_lane(world, open_page):
    world.has(HOST)
    world.keep(lane_run())
    app = open_page(run=rows.RUN_ID)
    said = words(app)
    assert "What would help?" in said
    assert "this helps 1 CPU thread most: compiled, 10 steps a call, 2.5" in said
    assert "its compiling pays off after" in said
    assert "Lower precision, so the training differs:" in said
    assert [metric.label for metric in app.metric] == []
    assert "The parts of a compiled or recorded step" in said
    assert [alt for alt in alts(app) if alt.startswith("Speedup of each variant")] == [
        "Speedup of each variant over the default loop on 1 CPU thread"
    ]


def test_while_lanes_are_measured_a_clock_goes_beside_what_is_expected(world, open_page):
    world.has(HOST)
    world.keep(rows.run({"cpu@1": 1e-3}, point=POINT))
    app = open_page(run=rows.RUN_ID)
    assert "expected to take " in words(app)
    checked(button(app, "Measure what would help 1 CPU thread").click().run())
    assert world.queue.claim(world.queue.worker_file.serving.process)
    assert re.search(r"Running for .+ s, expected to take .+ to .+ in all\.", words(open_page(run=rows.RUN_ID)))


def test_other_rows_give_other_sentences(world, open_page):
    world.has(HOST)
    world.keep(laned({"cpu@1": 1e-3, "cpu@1+fused": 1.3e-3}, point=POINT))
    said = words(open_page(run=rows.RUN_ID))
    assert "No gain on 1 CPU thread: the one variant with the same numerics is not clearly faster" in said


def test_what_is_not_measured_is_offered_for_each_device_and_asked_for_with_its_plain_steps(world, open_page):
    world.has(HOST, CARD)
    world.keep(rows.run({"cpu": 1e-3, "cuda:0": 5e-4}, point=POINT))
    app = open_page(run=rows.RUN_ID)
    assert {"Measure what would help the CPU", "Measure what would help the GPU"} <= set(labels(app))
    assert "The first compilation may take minutes." in words(app)
    app = checked(button(app, "Measure what would help the GPU").click().run())
    asked = submitted(world)
    assert (asked.point, asked.pairs) == (POINT, 14)
    contenders = [str(contender) for contender in asked.contenders]
    assert contenders[0] == "cuda:0"
    assert {"cuda:0+graph10", "cuda:0+compiled", "cuda:0+fused"} <= set(contenders)
    assert not any("tf32" in name for name in contenders)
    assert app.query_params["run"] == rows.RUN_ID  # who asks stays with the result
    assert "Place 1 in the queue" in words(app)


@pytest.mark.parametrize(("step_s", "compiled"), [(1e-4, "cpu@4+compiled10"), (1e-2, "cpu@4+compiled")])
def test_lanes_of_a_cpu_run_on_the_threads_of_the_row_and_one_of_them_is_compiled(world, open_page, step_s, compiled):
    world.has(HOST)
    world.keep(rows.run({"cpu": step_s}, point=POINT))
    checked(button(open_page(run=rows.RUN_ID), "Measure what would help the CPU").click().run())
    contenders = [str(contender) for contender in submitted(world).contenders]
    assert contenders == ["cpu@4", compiled, "cpu@4+kept", "cpu@4+fused", "cpu@4+bf16", "cpu@4+foreach"]


def test_what_was_measured_before_is_shown_without_measuring(world, open_page):
    world.has(HOST)
    world.keep(rows.run({"cpu@1": 1e-3}, point=POINT))
    app = open_page(run=rows.RUN_ID)
    checked(button(app, "Measure what would help 1 CPU thread").click().run())
    asked = submitted(world)
    world.end(world.queue.claim(world.queue.worker_file.serving.process), state="finished")
    steps = {str(contender): 1e-3 / (1 + place) for place, contender in enumerate(asked.contenders)}
    trials = laned(steps, point=POINT, run_id="e" * 12, outcome="timed")
    assert {row.experiment_id for row in trials} == {asked.id}
    world.keep(trials)
    app = open_page(run=rows.RUN_ID)
    assert "More variants on 1 CPU thread, measured 21 November 2026" in words(app)
    assert not any(label.startswith("Measure what would help") for label in labels(app))


def test_lanes_that_are_offered_for_two_devices_are_described_once(world, open_page):
    world.has(HOST)
    world.keep(rows.run({"cpu@1": 1e-3, "cpu@2": 5e-4}, point=POINT))
    said = words(open_page(run=rows.RUN_ID))
    assert said.count("Compares step times only, alternating with the default loop.") == 1
    assert said.count("The first compilation may take minutes.") == 1
    assert said.count("fused optimizer") == 1
    assert said.count("expected to take") == 2


def test_what_holds_for_every_chart_of_lanes_is_said_once(world, open_page):
    world.has(HOST)
    steps = {f"cpu@{threads}{lane}": 1e-3 for threads in (1, 2) for lane in ("", "+fused", "+bf16")}
    world.keep(laned(steps, point=POINT))
    said = words(open_page(run=rows.RUN_ID))
    assert said.count("Lower precision, so the training differs.") == 1
    assert said.count("took turns with the default loop on the same device") == 1


def test_lanes_of_which_nothing_could_be_told_are_measured_afresh(world, open_page):
    world.has(HOST)
    world.keep(rows.run({"cpu@1": 1e-3}, point=POINT))
    contenders = [
        "cpu@1",
        "cpu@1+compiled10",
        "cpu@1+compiled",
        "cpu@1+kept",
        "cpu@1+fused",
        "cpu@1+bf16",
        "cpu@1+foreach",
    ]
    world.keep(laned(dict.fromkeys(contenders, 1e-3), point=POINT, run_id="e" * 12, jitter=2.0, outcome="timed"))
    app = open_page(run=rows.RUN_ID)
    assert "More variants on" not in words(app)  # what holds only for a loaded machine is never shown as the answer
    checked(button(app, "Measure what would help 1 CPU thread").click().run())
    assert len(world.queue.jobs()) == 1


def test_nothing_is_offered_for_a_run_of_another_machine(world, open_page):
    world.has(HOST)
    world.keep(lane_run(machine_id="1" * 12))
    app = open_page(run=rows.RUN_ID)
    assert "this helps 1 CPU thread most" in words(app)
    assert not any(label.startswith("Measure what would help") for label in labels(app))


def test_other_rows_of_this_machine_are_remedies_too(world, open_page):
    world.has(HOST)
    world.keep(rows.run({"cpu@1": 1e-3}, point=POINT))
    others = ({"data_path": "per_batch"}, {"batch_size": 128}, {"batch_size": 128, "seed": 3})
    for place, changes in enumerate(others):
        point = dataclasses.replace(POINT, **changes)
        world.keep(rows.run({"cpu@1": 1e-3}, point=point, run_id=f"{place + 1:012x}"))
    said = words(open_page(run=rows.RUN_ID))
    assert "Data path “Copied for every batch” instead of “Preloaded on the device”: 0.99" in said
    assert said.count("Batch size 128 instead of 64") == 1
    assert "It learns differently: 9 updates per epoch instead of 19." in said


def test_the_best_lanes_of_two_devices_are_set_against_each_other(world, open_page):
    world.has(HOST, CARD)
    world.keep(laned({"cpu": 1e-3, "cpu+fused": 5e-4, "cuda:0": 4e-4, "cuda:0+graph10": 1e-4}, point=POINT))
    said = words(open_page(run=rows.RUN_ID))
    assert "Best against best: The GPU (CUDA graph of 10 steps) is 5." in said


# Crossover


def swept():
    contenders = ("cpu", "cuda:0", "cpu+compiled", "cuda:0+graph10")
    return Sweep(
        point=Point(hidden_size=16),
        axes=(Axis(name="hidden_size", values=tuple(SIZES)),),
        contenders=tuple(map(Contender.parse, contenders)),
    )


def keep_sweep(world):
    """The rows of a sweep, under the names of its questions."""
    asked, kept = swept(), []
    for row in sweep():
        experiment = asked.experiment(dataclasses.replace(asked.point, hidden_size=row.hidden_size))
        kept.append(dataclasses.replace(row, experiment_id=experiment.id))
    return world.keep(kept)


def test_a_sweep_with_lanes_draws_the_crossover_of_the_best_beside_that_of_plain_steps(world, open_page):
    world.has(HOST, CARD)
    kept = keep_sweep(world)
    job = world.run(swept())
    ids = tuple(row.trial_id for row in kept)
    world.end(job, state="finished", run_ids=tuple(dict.fromkeys(row.run_id for row in kept)), trial_ids=ids)
    app = open_page(CROSSOVER, job=job.id)
    said = words(app)
    assert "The GPU (NVIDIA Test GPU) is faster than the CPU (Test CPU, 4 threads) from a hidden size of about" in said
    winner = "The GPU with its best variant is faster than the CPU with its best variant"
    assert f"{winner} from a hidden size of about" in said
    assert "The default loops cross at about" in said
    assert "Time against hidden size for CPU with its best variant and GPU with its best variant" in alts(app)
    listed = next(table.value for table in app.dataframe if "CPU with its best variant" in table.value)
    assert set(listed["GPU with its best variant"]) == {"cuda:0+graph10"}


def test_without_lanes_there_is_nothing_of_best_lanes(world, open_page):
    world.has(HOST, CARD)
    trials = [row for row in sweep() if "+" not in row.contender]
    world.keep(trials)
    job = world.run(dataclasses.replace(swept(), contenders=(Contender(), Contender(device="cuda:0"))))
    ids = tuple(row.trial_id for row in trials)
    world.end(job, state="finished", run_ids=tuple(dict.fromkeys(row.run_id for row in trials)), trial_ids=ids)
    assert "Best against best" not in words(open_page(CROSSOVER, job=job.id))


def test_a_lane_experiment_is_the_same_question_however_often_it_is_asked():
    contenders = (Contender(), Contender.parse("cpu+fused"))
    one, other = (Experiment(point=POINT, contenders=contenders, pairs=pairs) for pairs in (20, 0))
    assert one.id == other.id
