"""Explore as it opens: the question, answers before anything runs, four doors, and how many sizes are measured."""

import dataclasses
import re

import pytest

from core.answer import training_cost
from core.answer.study import studies
from core.question.experiment import Contender, Experiment
from pages.explore.settings import FIRST
from pages.shared import layout, links
from tests import rows
from tests.studies import OTHER_MACHINE, TRAINING, rows_of, sweep
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import button, control, picture, table

PAGE = layout.EXPLORE
QUESTION = "When does training on a GPU pay off?"


@pytest.fixture
def crossing(world):
    """A stored study whose faster device changes along the hidden size."""
    study = sweep("a")
    world.keep(rows_of(study))
    return study


def test_it_asks_the_question_and_has_four_doors_and_a_chip(world, open_page):
    app = open_page(PAGE)
    assert QUESTION in words(app)
    doors = [link.proto.label for link in app.get("page_link")][:5]
    assert doors == ["Explore", "Learn", "Results", "Class", "Devices"]


@pytest.mark.parametrize(("devices", "chip"), [((CPU,), "No GPU here"), ((CPU, GPU), "NVIDIA Test GPU")])
def test_the_chip_says_what_was_found(world, open_page, devices, chip):
    world.has(*devices)
    assert [link.proto.label for link in open_page(PAGE).get("page_link")][4] == chip


def test_every_page_is_two_clicks_away_from_every_other(world, open_page):
    world.has(CPU)
    for page in layout.FILES:
        shown = {link.proto.page for link in open_page(page).get("page_link")}
        assert {"", "tutorials", "gallery", "class", "devices"} <= shown, page
    assert {"tutorials", "lessons", "cases"} <= {
        link.proto.page for link in open_page(layout.TUTORIALS).get("page_link")
    }


def test_before_anything_runs_the_picture_answers_with_what_is_predicted(world, open_page):
    world.has(CPU)
    shown = picture(open_page(PAGE))
    assert (shown["axis"]["name"], shown["values"][shown["place"]]) == ("depth", 11)
    assert shown["curves"] == []
    assert all(low < high for low, high in zip(shown["band"]["low"], shown["band"]["high"], strict=True) if low)
    assert "predicted" in " ".join(shown["sentences"][shown["place"]])
    assert sum(layer["parameters"] for layer in shown["layers"][shown["place"]]) == 2_804_390
    assert shown["figures"][shown["place"]].startswith("2,804,390 parameters")


def test_what_was_measured_is_drawn_with_intervals_and_what_was_recorded_with_its_machine(world, crossing, open_page):
    world.has(CPU, GPU)
    asked = {"dataset": "signal", "epochs": "10", "card": ""}
    here = picture(open_page(PAGE, **asked, devices=[crossing.baseline, crossing.challenger]))
    marks = {curve["mark"] for curve in here["curves"]}
    assert marks <= {"measured", "recorded"}
    assert [point[0] for point in here["curves"][0]["points"]] == list(crossing.sizes)
    for curve in here["curves"]:
        assert all(low <= middle <= high for _, middle, low, high in curve["points"])
        assert curve["note"].endswith(", recorded") or curve["mark"] == "measured"


SIGNAL = {"dataset": "signal", "epochs": "10", "card": ""}
"""Settings of the training of `sweep`."""


def test_a_recorded_gpu_is_drawn_beside_the_cpu_of_a_machine_without_one(world, open_page):
    world.has(CPU)
    for size in (16, 64, 256):
        point = dataclasses.replace(TRAINING, hidden_size=size)
        world.keep(rows.run({"cpu@1": 1e-4, "cpu": 9e-5}, point=point, run_id=f"c{size:011d}"))
    asked = {**SIGNAL, "devices": ["cpu@1", "cpu"]}
    assert [curve["mark"] for curve in picture(open_page(PAGE, **asked))["curves"]] == ["measured", "measured"]
    world.keep(rows_of(sweep("d", sizes=(64, 256, 1024), **OTHER_MACHINE)))
    shown = picture(open_page(PAGE, **asked))
    assert [curve["mark"] for curve in shown["curves"]] == ["measured", "measured", "recorded"]
    assert shown["curves"][2]["note"] == f"{GPU.name}, recorded"
    assert [point[0] for point in shown["curves"][2]["points"]] == [64, 256, 1024]
    beside = f"Another machine's {GPU.name} took 100 µs per step."
    said = {value: " ".join(shown["sentences"][place]) for place, value in enumerate(shown["values"])}
    assert {value for value in said if beside in said[value]} == {64, 256, 1024}


def test_a_recorded_gpu_comes_before_a_recorded_cpu_and_stays_away_from_a_gpu_of_this_machine(world, open_page):
    world.has(CPU)
    for size in (16, 32, 64, 128, 256):
        point = dataclasses.replace(TRAINING, hidden_size=size)
        run = {"cpu@1": 1e-4, "cpu": 9e-5}
        world.keep(rows.run(run, point=point, run_id=f"e{size:011d}", machine_id="beefbeefbee0"))
    world.keep(rows_of(sweep("f", **OTHER_MACHINE)))
    shown = picture(open_page(PAGE, **SIGNAL, devices=["cpu@1", "cpu"]))
    assert [curve["name"] for curve in shown["curves"]] == ["CPU", "GPU"]
    assert {curve["mark"] for curve in shown["curves"]} == {"recorded"}
    world.has(CPU, GPU)
    world.keep(rows_of(sweep("a")))
    shown = picture(open_page(PAGE, **SIGNAL, devices=["cpu", "cuda:0"]))
    assert [curve["mark"] for curve in shown["curves"]] == ["measured", "measured"]


def test_a_size_of_a_sweep_has_too_few_pairs_for_itself_and_gets_the_verdict_of_its_study(world, open_page):
    world.has(CPU, GPU)
    study = sweep("b", sizes=(16, 32, 64, 128, 256, 512, 1024), pairs=3)
    world.keep(rows_of(study))
    asked = {"dataset": "signal", "epochs": "10", "card": "", "devices": [study.baseline, study.challenger]}
    shown = picture(open_page(PAGE, **asked))
    answer = study.crossover("steady")
    for size in (16, 1024):
        verdict = study.verdict_at(size, answer)
        assert verdict.has_winner
        assert verdict.claim in shown["sentences"][shown["values"].index(size)][0]


def test_two_typed_prices_give_the_break_even_first_and_stand_in_no_link(world, crossing, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, dataset="signal", epochs="10", card="v100")
    assert "must be" not in words(app)
    checked(app.number_input(key="price_cpu").set_value(0.2).run())
    app = checked(app.number_input(key="price_gpu").set_value(2.0).run())
    assert "At these prices the GPU must be 10.0× as fast as the CPU to be cheaper." in words(app)
    assert not {name for name in app.query_params if "price" in name}


def test_list_prices_can_be_filled_in_with_their_source_and_are_grey_once_they_are_old(world, open_page, monkeypatch):
    world.has(CPU)
    app = open_page(PAGE, card="v100")
    assert app.number_input(key="price_gpu").value is None
    assert "skypilot-catalog" in words(app)
    assert "Outdated" not in words(app)
    app = checked(button(app, "Fill in list prices").click().run())
    assert [app.number_input(key=key).value for key in ("price_cpu", "price_gpu")] == [0.2, 0.79]
    assert not {name for name in app.query_params if "price" in name}
    monkeypatch.setattr(training_cost, "STALE_DAYS", -1)
    assert ":gray[Outdated: Lambda" in words(open_page(PAGE, card="v100"))


def test_a_card_without_a_list_price_has_none_to_fill_in(world, open_page):
    world.has(CPU)
    assert "The list price of this GPU is unknown" in words(open_page(PAGE, card="p100"))


def test_time_and_money_of_every_size_are_sent_before_one_drags(world, open_page):
    world.has(CPU)
    world.keep([*measured_cpu(9), *measured_cpu(11)])
    app = open_page(PAGE, **links.make_brief_link(FIRST), card="v100", devices=["cpu@1", "cpu"])
    costs = picture(app)["band"]["costs"]
    assert all(said.startswith("The training is predicted to take") for said in costs)
    assert "cost" not in "".join(costs)
    checked(button(app, "Fill in list prices").click().run())
    shown = picture(app)
    assert shown["band"]["cheaper"]["words"].startswith("cheaper from")
    known = [said for said in shown["band"]["costs"] if "on this CPU it takes" in said]
    assert len(known) == 3  # two that were measured, and the one between them
    assert all("as much as the CPU" in said for said in known)


def measured_cpu(depth):
    """Both thread counts of the opening question at a depth."""
    point = dataclasses.replace(FIRST, depth=depth)
    asked = Experiment(point=point, contenders=(Contender(threads=1), Contender()))
    facts = {"run_id": f"c{depth:011d}", "experiment": asked, "cores_usable": 2}
    steps = (2e-3 * 8 ** (depth - 9), 1e-3 * 8 ** (depth - 9))
    return [
        rows.trial(contender=name, step_s=step_s, threads=threads, **facts)
        for name, step_s, threads in (("cpu@1", steps[0], 1), ("cpu", steps[1], 2))
    ]


def test_published_figures_of_the_same_training_are_hollow_points_with_their_source(world, open_page):
    world.has(CPU)
    (shown,) = picture(open_page(PAGE, dataset="signal", model="mlp", axis="hidden_size"))["published"]
    assert shown["name"] == "HSF Training, undated"
    assert [[size, round(speedup, 2)] for size, speedup in shown["points"]] == [
        [5, 0.36],
        [10, 0.32],
        [100, 0.4],
        [1_000, 1.35],
        [2_000, 4.81],
    ]
    assert shown["wins_from"] == 1_000
    assert picture(open_page(PAGE, dataset="signal", model="mlp", axis="batch_size"))["published"] == []


def test_the_picture_is_there_before_the_devices_are_known(world, open_page):
    world.keep([*measured_cpu(9), *measured_cpu(11)])
    shown = picture(open_page(PAGE))
    assert shown["band"]
    assert {curve["mark"] for curve in shown["curves"]} <= {"measured", "recorded"}


@pytest.mark.parametrize("address", ["/", "/crossover"])
def test_settings_that_cannot_be_trained_keep_a_picture_of_the_model_and_say_why(world, open_page, address):
    world.has(CPU)
    link = {"dataset": "digits", "model": "mlp", "axis": "hidden_size", "samples": "100", "batch_size": "5000"}
    app = open_page(address, **link)
    assert any("The picture shows this model" in box.value for box in app.warning)
    assert "5,000" in words(app)
    assert picture(app)["layers"]


def test_layers_of_a_fused_recurrent_network_are_drawn_and_its_step_is_not_predicted(world, open_page):
    world.has(CPU)
    shown = picture(open_page(PAGE, dataset="signal", model="lstm", hidden_size="128", card="v100"))
    assert sum(layer["parameters"] for layer in shown["layers"][shown["place"]]) == 199_426
    assert set(shown["band"]["low"]) == {None}
    assert "Not covered" in shown["sentences"][shown["place"]][0]


def test_a_card_whose_predictions_mostly_failed_says_so_and_is_switched_off(world, open_page):
    world.has(CPU)
    asked = Experiment(point=FIRST, contenders=(Contender(), Contender(device="cuda:0")))
    known = {"experiment": asked, "contender": "cuda:0", "device_name": "Tesla V100-PCIE-16GB", "step_s": 5.0}
    failed = [rows.trial(run_id=f"f{place:011d}", **known) for place in range(10)]
    world.keep(failed[:9])
    nearly = picture(open_page(PAGE, card="v100", accuracy="true"))
    assert nearly["band"]["low"][nearly["place"]]
    assert nearly["band"]["record"] == "0 of 9 later runs on this card were within their predicted range."
    world.keep(failed[9:])
    app = open_page(PAGE, card="v100", accuracy="true")
    shown = picture(app)
    assert set(shown["band"]["low"]) == {None}
    assert "Predictions for it are switched off." in " ".join(shown["sentences"][shown["place"]])
    assert "Predictions for it are switched off." in words(app)
    other = picture(open_page(PAGE, card="p100"))
    assert other["band"]["low"][other["place"]]


def test_a_run_on_a_gpu_says_how_far_its_prediction_was_off(world, open_page):
    world.has(CPU)
    asked = Experiment(point=FIRST, contenders=(Contender(), Contender(device="cuda:0")))
    known = {"experiment": asked, "cores_usable": 2}
    world.keep(
        [
            rows.trial(contender="cpu", step_s=6e-3, threads=2, **known),
            rows.trial(contender="cuda:0", step_s=2e-3, device_name="Tesla V100-PCIE-16GB", **known),
        ]
    )
    said = next(line for line in words(open_page(PAGE, run=rows.RUN_ID)).splitlines() if "Predicted" in line)
    assert "measured 3.0×" in said
    assert said.endswith("inside the predicted range.")


def test_how_good_predictions_are_is_listed_card_by_card(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, card="h100", accuracy="true")
    assert (
        "Each of 71 published trainings was predicted without data of its own GPU: 67 were within the range"
        in words(app)
    )
    assert len(table(app, "Predicted")) == 9


def test_a_range_has_a_picture_whose_slider_sends_nothing(world, open_page):
    world.has(CPU)
    assert not picture(open_page("/crossover"))["sends"]


def test_what_is_known_without_the_store_is_drawn_where_it_cannot_be_read(world, open_page):
    world.has(CPU)
    world.store.folder.write_text("in the way")
    app = open_page(PAGE)
    assert ["cannot be read" in box.value for box in (*app.error, *app.warning)] == [True]
    assert picture(app)["band"]


def test_a_link_of_before_opens_its_settings(world, open_page):
    world.has(CPU)
    assert control(open_page(PAGE, hidden_size="512"), "hidden_size").value == 512


def test_a_run_that_was_shared_before_is_shown(world, open_page):
    world.keep(rows.run())
    assert "Export" in words(open_page(PAGE, run=rows.RUN_ID))


def test_what_is_no_link_of_ours_opens_as_if_it_said_nothing(world, open_page):
    assert control(open_page(PAGE, utm_source="elsewhere"), "dataset").value == "disc"


@pytest.mark.parametrize("address", ["/", "/crossover"])
def test_what_is_set_to_its_usual_value_stands_in_the_link_and_is_there_when_that_is_opened_anew(
    world, open_page, address
):
    world.has(CPU)
    app = open_page(address)
    for name, usual in {"dataset": "digits", "model": "mlp"}.items():
        app = checked(control(app, name).set_value(usual).run())
    for name, usual in {box.key: box.value for box in settings(app)}.items():
        app = checked(control(app, name).set_value(another(control(app, name))).run())
        if name in {box.key for box in settings(app)}:
            app = checked(control(app, name).set_value(usual).run())
        assert name in app.query_params, name
    now = {box.key: box.value for box in settings(app)}
    again = open_page(address, **dict(app.query_params))
    assert {box.key: box.value for box in settings(again)} == now
    assert now["hidden_size" if address == "/" else "epochs"] == (128 if address == "/" else 100)


def another(box):
    """A value of a slider, a switch or a number that it does not stand at."""
    if isinstance(box.value, bool):
        return not box.value
    if box.type in ("slider", "number_input"):
        return box.value + 1
    stops = [float(text.replace(",", "")) for text in box.options]
    stops = [int(stop) if stop.is_integer() else stop for stop in stops]
    if isinstance(box.value, tuple):
        return box.value[0], next(stop for stop in stops if box.value[0] < stop != box.value[1])
    return next(stop for stop in stops if stop != box.value)


def settings(app):
    """Every slider, switch and number of the page that links set."""
    kinds = ("select_slider", "slider", "toggle", "number_input")
    boxes = [box for kind in kinds for box in getattr(app, kind)]
    return [box for box in boxes if box.key in links.EXPLORE_SETTINGS]


def test_devices_that_were_chosen_for_one_size_are_those_of_a_range_and_back(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, devices=["cpu@1", "cuda:0"])
    app = checked(app.button_group(key="sizes").set_value("range").run())
    assert control(app, "contenders").value == ["cpu@1", "cuda:0"]
    assert button(app, "Find the crossover")
    app = checked(control(app, "contenders").set_value(["cpu", "cuda:0"]).run())
    app = checked(app.button_group(key="sizes").set_value("one").run())
    assert control(app, "devices").value == ["cpu", "cuda:0"]
    assert button(app, "Run")


@pytest.mark.parametrize("kind", ["run", "study"])
def test_the_picture_shows_the_devices_of_the_result_below_it_even_where_the_controls_have_others(
    world, crossing, open_page, kind
):
    world.has(CPU)
    (own,) = studies(rows_of_threads(), axis="hidden_size")
    world.keep(rows_of(own))
    name = crossing.id if kind == "study" else crossing.runs[0][0].run_id
    app = open_page(PAGE, **{kind: name}, sizes="one", axis="hidden_size", devices=["cpu@1", "cpu"], **SIGNAL)
    shown = picture(app)
    assert [curve["name"] for curve in shown["curves"]] == ["CPU", "GPU"]
    app = open_page(PAGE, axis="hidden_size", devices=["cpu@1", "cpu"], **SIGNAL)
    assert [curve["name"] for curve in picture(app)["curves"]] == ["1 CPU thread", "CPU"]


SIGNAL = {"dataset": "signal", "model": "mlp", "depth": "2", "batch_size": "64", "epochs": "10", "hidden_size": "64"}


def rows_of_threads():
    """Both thread counts of the training of `crossing` at more sizes than it has."""
    steps = {"cpu@1": 2e-4, "cpu": 1e-4}
    points = [dataclasses.replace(TRAINING, hidden_size=size) for size in (16, 32, 64, 128)]
    return [row for place, point in enumerate(points) for row in rows.run(steps, point=point, run_id=f"{place:012x}")]


def test_a_result_has_an_index_of_its_sections(world, crossing, open_page):
    world.has(CPU, GPU)
    for link in ({"run": crossing.runs[0][0].run_id}, {"study": crossing.id}):
        app = open_page(PAGE, **link)
        (index,) = (text.value for text in app.markdown if text.value.startswith("["))
        headings = {heading.value: heading.proto.anchor for heading in app.header}
        named = dict(re.findall(r"\[([^]]+)\]\(#([^)]+)\)", index))
        assert named.items() <= headings.items()
        parts = {"Size by size"} if "study" in link else {"What would help?", "Raw values", "Evaluation"}
        assert parts | {"Where the time goes", "Export"} <= set(named)


def test_a_link_in_which_no_gpu_was_chosen_opens_without_one(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert picture(app)["band"]
    app = checked(control(app, "card").set_value("").run())
    again = open_page(PAGE, **dict(app.query_params))
    assert control(again, "card").value == ""
    assert picture(again)["band"] is None


def test_a_measured_crossover_and_a_predicted_one_are_both_marked(world, open_page):
    world.has(CPU)
    steps = {5: (1e-4, 3e-4), 7: (6e-4, 8e-4), 9: (3e-3, 2e-3), 11: (1.6e-2, 8e-3)}
    for depth, (one, all_threads) in steps.items():
        point = dataclasses.replace(FIRST, depth=depth)
        world.keep(rows.run({"cpu@1": one, "cpu": all_threads}, point=point, run_id=f"{depth:012x}"))
    shown = picture(open_page(PAGE, **links.make_brief_link(FIRST), card="v100", devices=["cpu@1", "cpu"]))
    measured, predicted = (found["words"] for found in shown["crossovers"])
    assert re.fullmatch(r"crossover \d.*", measured)
    assert predicted.startswith("predicted crossover ")


def test_the_slider_of_a_range_begins_at_its_crossover(world, crossing, open_page):
    world.has(CPU, GPU)
    shown = picture(open_page(PAGE, study=crossing.id, card=""))
    low, high = (shown["crossovers"][0][end] for end in ("low", "high"))
    assert shown["place"] == min(range(len(shown["values"])), key=lambda at: abs(shown["values"][at] - low))
    assert crossing.sizes[0] < shown["values"][shown["place"]] <= high
