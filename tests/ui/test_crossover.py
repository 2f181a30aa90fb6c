"""The Crossover page against real folders: empty, a study stored, a sweep running and ended, bad links, own timings."""

import dataclasses
import re
import shlex

import pytest

from core import __main__ as command_line
from core.answer.study import study
from core.answer.study.result import BASES, BASIS_TITLES
from core.commands.sweep import asked_for
from core.progress import ContenderProgress, Progress, SweepProgress
from core.question import describe
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from pages.crossover import recorded
from pages.shared.data import prepared, reads
from tests import rows
from tests.ui.conftest import CPU, GPU, HINT, checked, words
from tests.ui.find import TIMES, alts, button, chart_data, control, drawn, table

PAGE = "pages/crossover/crossover.py"

PAIR = (Contender(), Contender(device="cuda:0"))
GRID = Sweep(
    point=Point(hidden_size=16),
    axes=(Axis(name="hidden_size", values=tuple(TIMES)), Axis(name="batch_size", values=(32, 64))),
    contenders=PAIR,
)
ADAPTIVE = Sweep(
    point=Point(hidden_size=16),
    axes=(Axis.between("hidden_size", 16, 2_048, adaptive=True),),
    contenders=PAIR,
    adaptive=True,
)
PROGRESS = Progress(
    phase="training",
    elapsed_s=9.0,
    contenders=(ContenderProgress(contender="cpu", step_s=2e-3), ContenderProgress(contender="cuda:0")),
    sweep=SweepProgress(
        done=3,
        total=57,
        size_label="hidden size 512",
        remaining_s=80.0,
        least_s=30.0,
        notes=("hidden size 2,048 was skipped.",),
    ),
)


def measured(*, batch_size=64, sizes=tuple(TIMES), third=False, **changes):
    """Rows of one run for each size."""
    found = []
    for place, size in enumerate(sizes):
        cpu, gpu = TIMES[size]
        steps = {"cpu": cpu, "cpu@1": 2 * cpu, "cuda:0": gpu} if third else {"cpu": cpu, "cuda:0": gpu}
        point = Point(hidden_size=size, batch_size=batch_size)
        found += rows.run(steps, run_id=f"{batch_size:04x}{place:08x}", point=point, pairs=6, **changes)
    return found


def job_of(world, asked, progress=PROGRESS, kept=()):
    """A sweep that is being measured, with rows that are stored by now."""
    running = world.run(asked, progress=progress)
    runs = tuple(dict.fromkeys(row.run_id for row in kept))
    running = dataclasses.replace(running, run_ids=runs, trial_ids=tuple(row.trial_id for row in kept))
    world.queue.report(running)
    return running


def test_an_empty_store_leaves_the_settings_and_says_what_will_appear(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert "No sweep is stored yet" in words(app)
    assert not button(app, "Find the crossover").disabled
    assert not app.error


def test_before_the_machine_is_known_nothing_can_be_run(world, open_page):
    app = open_page(PAGE)
    assert button(app, "Find the crossover").disabled
    assert any("Looking at" in str(box.value) for box in app.selectbox)


def test_without_an_accelerator_one_thread_meets_all_and_the_page_says_why_that_is_a_crossover(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert control(app, "contenders").value == ["cpu@1", "cpu@4"]
    assert "That is a crossover too" in words(app)
    assert HINT not in words(app)


def test_with_an_accelerator_the_cpu_meets_it_with_all_threads_and_with_one(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE)
    assert control(app, "contenders").value == ["cpu", "cuda:0"]
    checked(button(app, "Find the crossover").click().run())
    assert list(map(str, world.queue.jobs()[0].sweep.contenders)) == ["cpu", "cpu@1", "cuda:0"]


def test_the_fair_cpu_can_be_left_out(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, fair="false")
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs()[0].sweep.contenders == PAIR


@pytest.mark.parametrize(
    ("link", "axis", "gone"),
    [
        ({}, "hidden_size", "hidden_size"),
        ({"axis": "depth"}, "depth", "depth"),
        ({"axis": "batch_size"}, "batch_size", "batch_size"),
        ({"axis": "parameters"}, "parameters", "hidden_size"),
        ({"model": "cnn"}, "width", "width"),
        ({"model": "cnn", "axis": "parameters"}, "parameters", "width"),
        ({"model": "doubling-mlp"}, "depth", "depth"),
        ({"model": "linear"}, "batch_size", "batch_size"),
        ({"axis": "samples"}, "samples", "samples"),
    ],
)
def test_what_is_varied_has_a_range_and_no_control_of_its_own(world, open_page, link, axis, gone):
    world.has(CPU)
    app = open_page(PAGE, **link)
    assert control(app, "axis").value == axis
    assert f"{axis}_range" in drawn(app)
    assert gone not in drawn(app)
    assert not app.error
    assert not button(app, "Find the crossover").disabled


LINK = {
    "dataset": "signal",
    "samples": "12345",
    "model": "mlp",
    "axis": "hidden_size",
    "hidden_size_range": ["10", "1000"],
    "adaptive": "false",
    "depth": "3",
    "batch_size": "77",
    "epochs": "7",
    "learning_rate": "0.03",
    "data_path": "loader",
    "loader_workers": "2",
    "shuffle": "false",
    "seed": "42",
    "contenders": ["cpu@1", "cpu@2"],
    "sweep_budget_s": "90",
    "point_budget_s": "7",
    "pairs": "5",
}


def test_a_link_sets_every_control_and_the_button_asks_for_just_that(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, **LINK)
    checked(button(app, "Find the crossover").click().run())
    (job,) = world.queue.jobs()
    assert job.sweep == Sweep(
        point=Point(
            dataset="signal", samples=12345, model="mlp", hidden_size=10, depth=3, batch_size=77, epochs=7,
            learning_rate=0.03, data_path="loader", loader_workers=2, shuffle=False, seed=42,
        ),
        axes=(Axis.between("hidden_size", 10, 1_000),),
        contenders=(Contender(threads=1), Contender(threads=2)),
        pairs=5,
        budget_s=90,
        point_budget_s=7,
    )  # fmt: skip
    assert app.query_params["job"] in (job.id, [job.id])
    assert "Place 1 in the queue" in words(app)


def test_a_grid_varies_what_else_was_chosen_and_searches_nothing(world, open_page):
    world.has(CPU)
    link = {"also": ["batch_size", "learning_rate"], "batch_size_values": ["32", "48"], "learning_rate_values": ["0.3"]}
    app = open_page(PAGE, **link)
    assert "batch_size" not in drawn(app)
    assert "adaptive" not in {toggle.key for toggle in app.toggle}
    checked(button(app, "Find the crossover").click().run())
    asked = world.queue.jobs()[0].sweep
    assert [(axis.name, axis.values) for axis in asked.axes[1:]] == [
        ("batch_size", (32, 48)),
        ("learning_rate", (0.3,)),
    ]
    assert not asked.adaptive


def test_what_a_sweep_may_cost_is_said_before_it_runs(world, open_page):
    world.has(CPU)
    said = words(open_page(PAGE, adaptive="false", point_budget_s="10"))
    assert "**8** points" in said
    assert re.search(r"expected to take \*\*.+ to .+\*\*, never much over 10 min", said)


def test_a_search_is_expected_to_take_far_less_than_its_budget(world, open_page):
    world.has(CPU)
    asked = {"dataset": "signal", "batch_size": "32", "axis": "hidden_size", "hidden_size_range": ["8", "256"]}
    said = words(open_page(PAGE, **asked))
    least, most = re.search(r"expected to take \*\*(.+) to (.+)\*\*, never much over 10 min", said).groups()
    assert least.endswith(" s")
    assert most.startswith("1 min")


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"axis": "colour"}, "Along: 'colour' is not possible, it must be one of hidden_size, depth,"),
        ({"axis": "width"}, "Along: 'width' is not possible, it must be one of hidden_size, depth,"),
        ({"hidden_size_range": ["512", "16"]}, "range: '512:16' is not possible"),
        ({"hidden_size_range": ["0", "16"]}, "Hidden size: '0' is not possible, it must be between 1"),
        ({"hidden_size_range": ["many", "16"]}, "Hidden size: 'many' is not possible"),
        (
            {"hidden_size_range": ["8", "16,32"]},
            "Hidden size: '16,32' is not possible, it must be one number",
        ),
        ({"also": ["taste"]}, "Vary also: 'taste' is not possible, it must be one of"),
        ({"sweep_budget_s": "1e9"}, "Time budget: '1e9' is not possible, it must be a number between 1 and"),
        ({"point_budget_s": "soon"}, "Time for one point: 'soon' is not possible"),
        ({"pairs": "1"}, "Pairs of blocks at each point: '1' is not possible, it must be a number between 2 and 100."),
        ({"epochs": "0"}, "Epochs: 0 is not possible, it must be a whole number between 1 and 10,000."),
        ({"contenders": ["cpu", "cuda:0"]}, "The GPU is not on this machine: PyTorch sees the CPU."),
        ({"contenders": ["toaster"]}, "'toaster' is not possible"),
        (
            {"contenders": ["cpu"]},
            "Devices: 'cpu' is not possible, it must be two at least for an adaptive sweep.",
        ),
        ({"contenders": ["cpu"], "adaptive": "false"}, "Devices: 'cpu' is not possible, it must be two"),
        ({"axis": "batch_size", "batch_size_range": ["1", "4096"]}, "it must be at most the 1,257 training samples."),
    ],
)
def test_a_link_that_asks_for_what_is_not_allowed_gets_one_sentence_and_nothing_runs(world, open_page, link, sentence):
    world.has(CPU)
    app = open_page(PAGE, **link)
    assert [sentence in error.value.replace("\\", "") for error in app.error] == [True], [e.value for e in app.error]
    assert button(app, "Find the crossover").disabled
    assert world.queue.jobs() == []


def test_the_fault_of_a_link_stays_until_the_user_takes_over(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, pairs="1")
    assert checked(app.run()).error
    checked(button(app, "Use the settings shown").click().run())
    assert not app.error
    assert not button(app, "Find the crossover").disabled


def test_a_fault_of_one_page_is_none_of_the_other(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, pairs="1")
    app.query_params.clear()
    app.switch_page("pages/compare/compare.py")
    assert not checked(app.run()).error


def test_recorded_studies_are_listed_with_their_crossover_and_one_opens_by_its_link(world, open_page):
    world.has(CPU)
    for trial in measured(machine_id="1" * 12):
        world.gallery.add(trial)
    app = open_page(PAGE)
    listed = table(app, "Along")
    assert list(listed["Devices"]) == ["GPU against CPU"]
    assert list(listed["From … to"]) == ["16 to 2,048 (5 sizes)"]
    (study,) = reads.study_lines()
    app = open_page(PAGE, study=study.id)
    assert "GPU (NVIDIA Test GPU)" in app.success[0].value.replace("\\", "")
    assert any(alt.startswith("Time against hidden size") for alt in alts(app))
    assert list(table(app, "Verdict")["Hidden size"]) == list(TIMES)
    assert list(table(app, "Cost basis")["Cost basis"]) == [BASIS_TITLES[basis] for basis in BASES]
    assert f"study={study.id}" in words(app)
    pictures = {"PNG picture", "SVG picture", "Page with tooltips (HTML)"}
    offered = {found.label for found in app.get("download_button")}
    assert offered == {"10 rows as parquet", "10 rows as csv", "A sample", *pictures}


def test_a_study_that_is_opened_sets_the_controls_as_it_was_measured(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=128))
    (study,) = reads.study_lines()
    app = open_page(PAGE, study=study.id)
    assert (control(app, "batch_size").value, control(app, "axis").value) == (128, "hidden_size")
    assert control(app, "hidden_size_range").value == (16, 2_048)
    assert control(app, "contenders").value == ["cpu", "cuda:0"]
    assert "ask for something else" not in words(app)
    control(app, "batch_size").set_value(32)
    said = words(checked(app.run()))
    assert "The settings ask for something other than what is shown: batch size 32, not 128." in said
    assert f"study={study.id}" in said
    checked(button(app, "Set them as shown").click().run())
    assert control(app, "batch_size").value == 128
    assert "ask for something else" not in words(app)


def test_a_link_that_says_settings_keeps_them_beside_a_study_of_others(world, open_page):
    world.has(CPU)
    for trial in measured(machine_id="1" * 12):
        world.gallery.add(trial)
    (study,) = reads.study_lines()
    app = open_page(PAGE, study=study.id, batch_size="32", axis="hidden_size")
    assert control(app, "batch_size").value == 32
    said = words(app)
    assert "The settings ask for something other than what is shown: batch size 32, not 64" in said


def test_a_study_of_devices_that_are_not_here_leaves_those_of_this_machine(world, open_page):
    world.has(CPU)
    for trial in measured(batch_size=128, machine_id="1" * 12):
        world.gallery.add(trial)
    (study,) = reads.study_lines()
    app = open_page(PAGE, study=study.id)
    assert control(app, "batch_size").value == 128
    assert "cuda:0" not in control(app, "contenders").value
    assert "devices" in words(app)


def test_settings_that_were_measured_here_before_are_answered_before_anything_is_run(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=256))
    asked = {"axis": "hidden_size", "batch_size": "256", "contenders": ["cpu", "cuda:0"], "fair": "false"}
    app = open_page(PAGE, **asked)
    assert "Measured here before, on 21 November 2026" in words(app)
    assert any(alt.startswith("Time against hidden size") for alt in alts(app))
    control(app, "batch_size").set_value(32)
    assert "Measured here before" not in words(checked(app.run()))


def test_a_recorded_study_whose_sizes_were_measured_again_is_listed_with_its_new_crossover(world, open_page):
    world.has(CPU)
    for trial in measured(machine_id="1" * 12):
        world.gallery.add(trial)
    before = table(open_page(PAGE), "Along")
    for place, size in enumerate(TIMES):
        again = rows.run(
            {"cpu": 1e-3, "cuda:0": 1e-4},
            run_id=f"ffff{place:08x}",
            point=Point(hidden_size=size, batch_size=64),
            pairs=6,
            machine_id="1" * 12,
            started_at="2030-01-01T00:00:00.000+00:00",
        )
        for trial in again:
            world.gallery.add(trial)
    after = table(open_page(PAGE), "Along")
    assert list(after["From … to"]) == list(before["From … to"])
    assert list(after["Crossover"]) != list(before["Crossover"])


def test_a_study_of_a_busy_machine_is_marked_in_its_answer_and_in_the_list(world, open_page):
    world.has(CPU)
    quiet = measured()
    world.keep([dataclasses.replace(row, block_switches=(10_000,) * len(row.block_pair)) for row in quiet])
    (found,) = study.studies(quiet, axis="hidden_size")
    assert next(iter(table(open_page(PAGE), "Along")["Crossover"])).endswith(", on a busy machine")
    app = open_page(PAGE, study=found.id)
    assert "Measured on a busy machine: other programs took processor time" in words(app)
    assert not app.success, "a green box is for good news"


def test_of_many_recorded_studies_the_largest_are_listed_and_the_rest_is_counted(world, open_page, monkeypatch):
    world.has(CPU)
    monkeypatch.setattr(recorded, "MOST_STUDIES", 1)
    world.keep(measured())
    world.keep(measured(batch_size=32, sizes=(16, 64)))
    app = open_page(PAGE)
    assert list(table(app, "Along")["From … to"]) == ["16 to 2,048 (5 sizes)"]
    count = len(reads.study_lines())
    assert count > 1
    assert f"These are the 1 with the most sizes; all {count} are in the Gallery." in words(app)


def test_the_cost_basis_is_in_the_link_and_at_the_axis(world, open_page):
    world.has(CPU)
    world.keep(measured())
    (study,) = reads.study_lines()
    app = open_page(PAGE, study=study.id, basis="cold_start")
    assert "What is counted, with start-up" in words(app)
    spec = next(chart.proto.spec for chart in app.get("vega_lite_chart") if chart.proto.alt.startswith("Time"))
    assert "start-up" in spec


def test_the_cause_is_that_of_the_size_just_below_the_crossing(world, open_page):
    world.has(CPU)
    world.keep(measured())
    app = open_page(PAGE, study=reads.study_lines()[0].id)
    assert "Why, at hidden size 256:" in words(app)


def test_of_all_pairs_of_eight_devices_only_the_one_that_is_shown_is_drawn(world, open_page, monkeypatch):
    devices = ("cpu@1", "cpu@2", "cpu@3", "cpu@4", "cuda:0", "cuda:1", "xpu:0", "mps")
    for size in (16, 64, 256):
        steps_s = {name: (size + place) * 1e-6 for place, name in enumerate(devices)}
        world.keep(rows.run(steps_s, run_id=f"{size:012x}", point=Point(hidden_size=size)))
    made, real = [], prepared.study_charts.crossover
    monkeypatch.setattr(prepared.study_charts, "crossover", lambda *of, **how: made.append(of) or real(*of, **how))
    assert len(reads.study_lines()) == 28
    open_page(PAGE, study=reads.study_lines()[0].id)
    assert len(made) == 1


def test_an_unknown_study_or_job_is_said_to_be_unknown(world, open_page):
    world.has(CPU)
    assert "There is no study ffffffffffff here" in words(open_page(PAGE, study="f" * 12))
    assert "There is no job" in words(open_page(PAGE, job="0" * 20 + "-abcdef"))


def test_a_sweep_that_is_measured_shows_how_far_it_is_and_the_answer_so_far(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(measured(sizes=(16, 256, 2048)))
    job = job_of(world, ADAPTIVE, kept=kept)
    app = open_page(PAGE)
    said = words(app)
    assert app.query_params["job"] in (job.id, [job.id])
    (bar,) = app.get("progress")
    assert bar.proto.text.replace("\\", "") == (
        "**3** sizes done · now hidden size 512, training · about 30 s to 1 min 20 s left"
    )
    assert "hidden size 2,048 was skipped." in said
    assert "**So far:**" in said
    assert any(alt.startswith("Time against hidden size") for alt in alts(app))
    assert button(app, "Stop")


def test_points_that_take_turns_are_shown_with_the_pairs_that_they_have_by_now(world, open_page):
    world.has(CPU, GPU)
    turns = SweepProgress(done=0, total=57, alive=4, pairs=8, pairs_each=3, size_label="hidden size 512")
    job = job_of(world, ADAPTIVE, progress=dataclasses.replace(PROGRESS, sweep=turns))
    world.queue.files(job.id).keep_partial(measured(outcome="interrupted"))
    app = open_page(PAGE, job=job.id)
    said = words(app)
    (bar,) = app.get("progress")
    assert "**0** sizes done, 4 take turns and have 8 of 12 pairs" in bar.proto.text
    assert "**So far:**" in said
    assert world.store.trials() == []


def test_a_sweep_without_rows_yet_has_no_answer_and_no_chart(world, open_page):
    world.has(CPU, GPU)
    job_of(world, ADAPTIVE, progress=None)
    app = open_page(PAGE)
    assert "Measuring" in words(app)
    assert "So far" not in words(app)
    assert not alts(app)


def test_stop_takes_a_waiting_sweep_out_of_the_queue(world, open_page):
    world.has(CPU, GPU)
    job = world.submit(ADAPTIVE)
    app = open_page(PAGE, job=job.id)
    checked(button(app, "Stop").click().run())
    assert world.queue.job(job.id).state == "stopped"
    assert "Stopped before it began." in words(checked(app.run()))


@pytest.mark.parametrize("state", ["failed", "stopped", "crashed"])
def test_a_sweep_that_did_not_finish_says_why_shows_what_it_had_and_goes_on(world, open_page, state):
    world.has(CPU, GPU)
    kept = world.keep(measured(sizes=(16, 256, 2048)))
    job = world.end(job_of(world, ADAPTIVE, kept=kept), state=state, message="It was ended after 3 points.")
    app = open_page(PAGE, job=job.id)
    assert "It was ended after 3 points." in words(app)
    assert len(table(app, "Verdict")) == 3
    checked(button(app, "Run again (continues)").click().run())
    again = world.queue.jobs()[-1]
    assert again.id != job.id
    assert again.sweep == job.sweep


def test_a_finished_sweep_shows_its_whole_answer(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(measured(third=True))
    asked = dataclasses.replace(ADAPTIVE, contenders=(Contender(), Contender(threads=1), Contender(device="cuda:0")))
    job = world.end(job_of(world, asked, kept=kept), state="finished")
    app = open_page(PAGE, job=job.id)
    assert "GPU (NVIDIA Test GPU)" in app.success[0].value.replace("\\", "")
    both = [column for column in table(app, "Cost basis") if column != "Cost basis"]
    assert both == ["GPU against CPU", "GPU against 1 CPU thread"]
    assert "python -m core sweep" in words(app)
    assert "--axis hidden_size --range 16:2048 --adaptive" in words(app)
    assert "hidden size 2,048 was skipped." in words(app)
    assert "SVG picture" in [found.label for found in app.get("download_button")]
    checked(button(app, "Measure again").click().run())
    assert world.queue.jobs()[-1].fresh


def grid_rows():
    return [*measured(batch_size=32), *measured(batch_size=64)]


def test_a_grid_has_a_map_and_a_table_by_epoch_time(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(grid_rows())
    job = world.end(job_of(world, GRID, kept=kept), state="finished")
    app = open_page(PAGE, job=job.id)
    assert {"CPU", "GPU"} <= set(chart_data(app, "Map of the faster device")["winner"])
    assert alts(app)[0] == "Map of the faster device"
    assert "not measured" not in set(chart_data(app, "Map of the faster device")["winner"])
    listed = table(app, "Epoch (s)")
    assert len(listed) == len(kept)
    assert listed["Epoch (s)"].is_monotonic_increasing
    assert set(listed["Batch size"]) == {32, 64}


def test_a_grid_that_is_stored_as_a_whole_is_answered_at_once_and_its_link_shows_it_again(world, open_page):
    world.has(CPU, GPU)
    world.keep(grid_rows())
    link = {
        "hidden_size_range": ["16", "2048"], "also": ["batch_size"], "batch_size_values": ["32", "64"], "fair": "false",
    }  # fmt: skip
    asked = dataclasses.replace(GRID, axes=(Axis.between("hidden_size", 16, 2_048), GRID.axes[1]))
    for size in set(asked.axes[0].values) - set(TIMES):
        for batch_size in (32, 64):
            point = Point(hidden_size=int(size), batch_size=batch_size)
            world.keep(rows.run(run_id=f"{batch_size:04x}{int(size):08x}", point=point, pairs=6))
    app = open_page(PAGE, **link)
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs() == []
    assert app.query_params["sweep"] in (asked.id, [asked.id])
    assert "Measured before, on" in words(app)
    fresh = open_page(PAGE, **link, sweep=asked.id)
    assert "Map of the faster device" in alts(fresh)


def test_a_link_to_a_sweep_whose_settings_were_changed_says_so(world, open_page):
    world.has(CPU, GPU)
    assert "does not say which sweep" in words(open_page(PAGE, sweep="0" * 16))


def test_jobs_of_one_page_are_led_to_it_from_the_other(world, open_page):
    world.has(CPU, GPU)
    comparison, sweep = world.submit(), world.submit(ADAPTIVE)
    assert "This link is to a comparison, which" in words(open_page(PAGE, job=comparison.id))
    assert "This link is to a sweep, which" in words(open_page("pages/compare/compare.py", job=sweep.id))


def test_what_a_file_says_is_never_markup(world, open_page):
    world.has(CPU)
    evil = "![x](http://evil.example/x.png) <b>:red[bold]</b> $x$"
    world.keep(measured(device_name=evil, cpu_name=evil))
    app = open_page(PAGE, study=reads.study_lines()[0].id)
    for kind in ("markdown", "caption", "warning", "info", "success"):
        for element in getattr(app, kind):
            assert "](http" not in element.value
            assert "<b>" not in element.value
            assert ":red[" not in element.value


def upload(app, data, name="mine.csv"):
    return checked(app.file_uploader[0].upload(name, data, "text/csv").run())


def test_own_timings_get_the_same_answer(world, open_page):
    world.has(CPU)
    app = upload(open_page(PAGE), recorded.SAMPLE.encode())
    assert "gpu" in app.success[0].value
    assert "Time against size for cpu and gpu" in alts(app)
    assert list(table(app, "Verdict")["Size"]) == [100, 400, 1600, 6400]


def test_their_speedup_is_drawn_and_a_link_that_opened_it_is_still_read(world, open_page):
    world.has(CPU)
    assert "Speedup against size" in alts(upload(open_page(PAGE), recorded.SAMPLE.encode()))
    assert "Speedup against size" in alts(upload(open_page(PAGE, own_speedup="true"), recorded.SAMPLE.encode()))


def test_a_table_whose_names_do_not_say_which_is_the_cpu_is_asked_about_and_not_guessed(world, open_page):
    world.has(CPU)
    rows = [f"{size};{size / 10:.1f};{0.8 + size / 1e5}".replace(".", ",") for size in (64, 128, 256)]
    app = upload(open_page(PAGE), "\n".join(["size;Xeon (ms);A100 (ms)", *rows]).encode("utf-16"))
    assert "Time against size for Xeon and A100" not in alts(app)
    assert not app.error
    baseline, challenger = (box for box in app.selectbox if box.key in ("timings_baseline", "timings_challenger"))
    assert baseline.options == ["A100", "Xeon"]
    baseline.select("Xeon")
    app = checked(challenger.select("A100").run())
    assert "Time against size for Xeon and A100" in alts(app)


def test_own_timings_can_be_pasted(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    checked(app.text_area[0].set_value(recorded.SAMPLE).run())
    assert "Time against size for cpu and gpu" in alts(app)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "not UTF-16"),
        (b"a,\xff,c\n1,2,3\n", "not UTF-8"),
        (b"a,device,c\n1,2,3\n", "has no column size"),
        (b"size,device,seconds\n1,cpu,-2\n", "seconds"),
        (b"size,device,seconds\n1,cpu,<b>quick</b>\n", "seconds"),
        (b"size,device,seconds\n1,cpu,2\n", "at least two different"),
    ],
)
def test_a_bad_file_gets_its_one_sentence(world, open_page, data, sentence):
    world.has(CPU)
    app = upload(open_page(PAGE), data)
    assert [sentence in error.value.replace("\\", "") for error in app.error] == [True]
    assert "<b>" not in app.error[0].value


SWEEPS = [
    GRID,
    ADAPTIVE,
    dataclasses.replace(ADAPTIVE, axes=(Axis.between("parameters", 10_000, 400_000, adaptive=True),)),
    dataclasses.replace(ADAPTIVE, axes=(Axis(name="hidden_size", values=(3, 5, 100)),), adaptive=False, pairs=4),
    dataclasses.replace(GRID, axes=(GRID.axes[0], Axis(name="learning_rate", values=(0.01, 0.5)))),
    dataclasses.replace(ADAPTIVE, point=Point(model="cnn"), axes=(Axis.between("width", 1, 8, adaptive=True),)),
]


@pytest.mark.parametrize("asked", SWEEPS, ids=lambda asked: " ".join(axis.name for axis in asked.axes))
def test_the_command_that_is_shown_asks_for_the_same_points(asked):
    options = command_line.parser().parse_args(shlex.split(describe.command(asked))[3:])
    again = dataclasses.replace(asked_for(options), contenders=asked.contenders)
    assert again.id == asked.id
    assert options.devices == "cpu,cuda:0"
