"""Studies that were recorded, on the Crossover page."""

import dataclasses

from core.answer import study
from core.answer.judgement import BASES, BASIS_TITLES
from core.question.experiment import Point
from pages.explore import view
from pages.shared import queries
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.crossover.asked import PAGE, measured
from tests.ui.find import TIMES, alts, button, control, table


def test_recorded_studies_are_listed_with_their_crossover_and_one_opens_by_its_link(world, open_page):
    world.has(CPU)
    world.ship(measured(machine_id="1" * 12))
    app = open_page(PAGE)
    listed = table(app, "Vary")
    assert list(listed["Devices"]) == ["GPU against CPU"]
    assert list(listed["From … to"]) == ["16 to 2,048 (5 sizes)"]
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id)
    assert "GPU (NVIDIA Test GPU)" in app.success[0].value.replace("\\", "")
    assert any(alt.startswith("Time against hidden size") for alt in alts(app))
    assert list(table(app, "Verdict")["Hidden size"]) == list(TIMES)
    assert list(table(app, "Costs to include")["Costs to include"]) == [BASIS_TITLES[basis] for basis in BASES]
    assert f"study={study.id}" in words(app)
    pictures = {"PNG picture", "SVG picture", "Page with tooltips (HTML)"}
    offered = {found.label for found in app.get("download_button")}
    assert offered == {"10 rows as parquet", "10 rows as csv", "A sample", *pictures}


def test_a_study_that_is_opened_sets_the_controls_as_it_was_measured(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=128))
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id)
    assert (control(app, "batch_size").value, control(app, "axis").value) == (128, "hidden_size")
    assert control(app, "hidden_size_range").value == (16, 2_048)
    assert control(app, "contenders").value == ["cpu", "cuda:0"]
    assert "settings differ from the result" not in words(app)
    control(app, "batch_size").set_value(32)
    said = words(checked(app.run()))
    assert "The settings differ from the result shown: batch size 32, not 128." in said
    control(app, "fair").set_value(True)
    assert "; devices CPU, 1 CPU thread and GPU, not CPU and GPU." in words(checked(app.run()))
    assert f"study={study.id}" in said
    checked(button(app, "Use the settings of the result").click().run())
    assert control(app, "batch_size").value == 128
    assert "settings differ from the result" not in words(app)


def test_what_a_study_sets_stands_in_the_link_so_that_it_is_there_when_opened_anew(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=512))
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id)
    link = dict(app.query_params)
    assert link["batch_size"] in ("512", ["512"])
    assert link["fair"] in ("false", ["false"])
    said = words(open_page(PAGE, **link))
    assert "The settings differ from the result" not in said


def test_a_switch_that_was_drawn_is_set_as_shown_too(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=512))
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id)
    control(app, "fair").set_value(True)
    control(app, "batch_size").set_value(32)
    checked(app.run())
    checked(button(app, "Use the settings of the result").click().run())
    assert (control(app, "fair").value, control(app, "batch_size").value) == (False, 512)
    assert dict(app.query_params)["fair"] in ("false", ["false"])


def test_a_link_that_says_settings_keeps_them_beside_a_study_of_others(world, open_page):
    world.has(CPU)
    world.ship(measured(machine_id="1" * 12))
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id, batch_size="32", axis="hidden_size")
    assert control(app, "batch_size").value == 32
    said = words(app)
    assert "The settings differ from the result shown: batch size 32, not 64" in said


def test_a_study_of_devices_that_are_not_here_leaves_those_of_this_machine(world, open_page):
    world.has(CPU)
    world.ship(measured(batch_size=128, machine_id="1" * 12))
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id)
    assert control(app, "batch_size").value == 128
    assert "cuda:0" not in control(app, "contenders").value
    assert "devices" in words(app)


def test_settings_that_were_measured_here_before_are_answered_before_anything_is_run(world, open_page):
    world.has(CPU, GPU)
    world.keep(measured(batch_size=256))
    asked = {"axis": "hidden_size", "batch_size": "256", "contenders": ["cpu", "cuda:0"], "fair": "false"}
    app = open_page(PAGE, **asked)
    assert "Measured here on 21 November 2026" in words(app)
    assert any(alt.startswith("Time against hidden size") for alt in alts(app))
    control(app, "batch_size").set_value(32)
    assert "Measured here on" not in words(checked(app.run()))


def test_a_recorded_study_whose_sizes_were_measured_again_is_listed_with_its_new_crossover(world, open_page):
    world.has(CPU)
    world.ship(measured(machine_id="1" * 12))
    before = table(open_page(PAGE), "Vary")
    again = []
    for place, size in enumerate(TIMES):
        again += rows.run(
            {"cpu": 1e-3, "cuda:0": 1e-4},
            run_id=f"ffff{place:08x}",
            point=Point(hidden_size=size, batch_size=64),
            pairs=6,
            machine_id="1" * 12,
            started_at="2030-01-01T00:00:00.000+00:00",
        )
    world.ship(again)
    after = table(open_page(PAGE), "Vary")
    assert list(after["From … to"]) == list(before["From … to"])
    assert list(after["Crossover"]) != list(before["Crossover"])


def test_a_study_of_a_busy_machine_is_marked_in_its_answer_and_in_the_list(world, open_page):
    world.has(CPU)
    quiet = measured(batch_size=24)  # what is worked out of rows is kept by their names, which no other test has
    world.keep([dataclasses.replace(row, block_switches=(10_000,) * len(row.block_pair)) for row in quiet])
    (found,) = study.studies(quiet, axis="hidden_size")
    assert next(iter(table(open_page(PAGE), "Vary")["Crossover"])).endswith(", on a busy machine")
    app = open_page(PAGE, study=found.id)
    assert "Measured on a busy machine: other programs took processor time" in words(app)
    assert not app.success, "a green box is for good news"


def test_recorded_studies_that_are_decided_come_first(world, open_page):
    world.has(CPU)
    undecided = [
        dataclasses.replace(trial, run_id=f"e{trial.run_id[1:]}", trial_id=f"e{trial.trial_id[1:]}")
        for trial in measured(machine_id="2" * 12, jitter=3.0)
    ]
    world.ship([*undecided, *measured(sizes=tuple(TIMES)[:4], machine_id="1" * 12)])
    listed = table(open_page(PAGE), "Vary")
    assert [sizes.partition(" (")[2] for sizes in listed["From … to"]] == ["4 sizes)", "5 sizes)"]


def test_of_many_recorded_studies_the_largest_are_listed_and_the_rest_is_counted(world, open_page, monkeypatch):
    world.has(CPU)
    monkeypatch.setattr(view, "MAX_STUDIES", 1)
    world.keep(measured())
    world.keep(measured(batch_size=32, sizes=(16, 64)))
    app = open_page(PAGE)
    assert list(table(app, "Vary")["From … to"]) == ["16 to 2,048 (5 sizes)"]
    count = len(queries.list_study_lines())
    assert count > 1
    assert f"These are the 1 studies with the most sizes. All {count} are in the Gallery." in words(app)


def test_the_cost_basis_is_in_the_link_and_at_the_axis(world, open_page):
    world.has(CPU)
    world.keep(measured())
    (study,) = queries.list_study_lines()
    app = open_page(PAGE, study=study.id, basis="cold_start")
    assert "Included (with start-up)" in words(app)
    spec = next(chart.proto.spec for chart in app.get("vega_lite_chart") if chart.proto.alt.startswith("Time"))
    assert "start-up" in spec


def test_the_cause_is_that_of_the_size_just_below_the_crossing(world, open_page):
    world.has(CPU)
    world.keep(measured())
    app = open_page(PAGE, study=queries.list_study_lines()[0].id)
    assert "Why, at hidden size 256:" in words(app)


def test_of_all_pairs_of_eight_devices_only_the_one_that_is_shown_is_drawn(world, open_page, monkeypatch):
    devices = ("cpu@1", "cpu@2", "cpu@3", "cpu@4", "cuda:0", "cuda:1", "xpu:0", "mps")
    found = []
    for size in (16, 64, 256):
        steps_s = {name: (size + place) * 1e-6 for place, name in enumerate(devices)}
        found += rows.run(steps_s, run_id=f"{size:012x}", point=Point(hidden_size=size))
    world.keep(found)
    made, real = [], queries.study_charts.crossover_chart
    monkeypatch.setattr(queries.study_charts, "crossover_chart", lambda *of, **how: made.append(of) or real(*of, **how))
    assert len(queries.list_study_lines()) == 28
    open_page(PAGE, study=queries.list_study_lines()[0].id)
    assert len(made) == 1


def test_an_unknown_study_or_job_is_said_to_be_unknown(world, open_page):
    world.has(CPU)
    assert "There is no study ffffffffffff here" in words(open_page(PAGE, study="f" * 12))
    assert "There is no job" in words(open_page(PAGE, job="0" * 20 + "-abcdef"))
