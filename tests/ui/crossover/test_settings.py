"""The settings of the Crossover page: nothing stored, links, good and bad, and the command that asks the same."""

import dataclasses
import re
import shlex

import pytest

from core import __main__ as command_line
from core.commands.run import build_sweep
from core.question import describe
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from tests.ui import every_setting
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.crossover.asked import ADAPTIVE, GRID, PAGE, PAIR
from tests.ui.find import button, control, drawn


def test_an_empty_store_leaves_the_settings_and_says_what_will_appear(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert "No sweep is stored yet" in words(app)
    assert not button(app, "Find the crossover").disabled
    assert not app.error


def test_a_store_that_cannot_be_read_is_said_and_leaves_the_page_as_it_is(world, open_page):
    world.has(CPU)
    world.store.folder.write_text("in the way")
    app = open_page(PAGE)
    said = f"The store {world.store.folder} cannot be read: Not a directory."
    assert [box.value.replace("\\", "") for box in (*app.error, *app.warning)] == [said]
    assert "Up to **57** sizes" in words(app)
    assert app.get("expander")
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs() == []


def test_before_the_machine_is_known_nothing_is_wrong_and_the_button_can_be_pressed(world, open_page):
    app = open_page(PAGE)
    assert any("Looking at" in str(box.value) for box in app.selectbox)
    assert not app.error
    checked(button(app, "Find the crossover").click().run())
    assert "It starts as soon as this machine's devices are known." in words(app)
    assert world.queue.jobs() == []
    world.has(CPU)
    checked(app.run())
    (job,) = world.queue.jobs()
    assert list(map(str, job.sweep.contenders)) == ["cpu@1", "cpu@4"]


def test_without_an_accelerator_one_thread_meets_all_and_the_page_says_why_that_is_a_crossover(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert control(app, "contenders").value == ["cpu@1", "cpu@4"]
    assert "pays off only above some size" in words(app)


@pytest.mark.parametrize("devices", [(CPU,), (CPU, GPU)])
def test_who_meets_whom_stands_on_top_where_no_window_cuts_it_off(world, open_page, devices):
    world.has(*devices)
    keys = list(_keys(open_page(PAGE).main))
    assert keys.index("contenders") < min(keys.index("axis"), keys.index("dataset"))


def _keys(block):
    """The keys of controls, from top to bottom."""
    for part in block.children.values():
        yield from _keys(part) if hasattr(part, "children") else [getattr(part, "key", None)]


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
    **{name: text for name, text in every_setting.LINK.items() if name != "hidden_size"},
    "axis": "hidden_size",
    "hidden_size_range": ["10", "1000"],
    "adaptive": "false",
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
        point=dataclasses.replace(every_setting.POINT, hidden_size=10),
        axes=(Axis.from_range("hidden_size", 10, 1_000),),
        contenders=(Contender(threads=1), Contender(threads=2)),
        pairs=5,
        budget_s=90,
        point_budget_s=7,
    )
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
    assert re.search(r"expected to take \*\*.+ to .+\*\*, at most about 10 min", said)


def test_a_search_is_expected_to_take_far_less_than_its_budget(world, open_page):
    world.has(CPU)
    asked = {"dataset": "signal", "batch_size": "32", "axis": "hidden_size", "hidden_size_range": ["8", "256"]}
    said = words(open_page(PAGE, **asked))
    least, most = re.search(r"expected to take \*\*(.+) to (.+)\*\*, at most about 10 min", said).groups()
    assert least.endswith(" s")
    assert most.startswith("1 min")


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"axis": "colour"}, "Vary must be one of Hidden size, Depth,"),
        ({"axis": "width"}, "Vary must be one of Hidden size, Depth,"),
        ({"hidden_size_range": ["512", "16"]}, "(got '512:16')"),
        ({"hidden_size_range": ["0", "16"]}, "Hidden size must be between 1"),
        ({"hidden_size_range": ["many", "16"]}, "(got 'many')"),
        (
            {"hidden_size_range": ["8", "16,32"]},
            "Hidden size must be a single number",
        ),
        ({"also": ["taste"]}, "Vary also must be one of"),
        ({"sweep_budget_s": "1e9"}, "Time budget must be a number between 1 and"),
        ({"point_budget_s": "soon"}, "(got 'soon')"),
        ({"pairs": "1"}, "Pairs of blocks at each point must be a number between 2 and 100 (got '1')."),
        ({"epochs": "0"}, "Epochs must be a whole number between 1 and 10,000 (got 0)."),
        ({"contenders": ["cpu", "cuda:0"]}, "The GPU is not on this machine: PyTorch sees the CPU."),
        ({"contenders": ["toaster"]}, "(got 'toaster')"),
        (
            {"contenders": ["cpu"]},
            "Devices must be at least two for an adaptive sweep (got 'cpu').",
        ),
        ({"contenders": ["cpu"], "adaptive": "false"}, "Devices must be at least two"),
        ({"axis": "batch_size", "batch_size_range": ["1", "4096"]}, "must be at most the 1,257 training samples (got "),
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


def test_a_fault_of_a_range_is_none_of_one_size(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, pairs="1")
    app.session_state["sizes"] = "one"
    assert not checked(app.run()).error


SWEEPS = [
    GRID,
    ADAPTIVE,
    dataclasses.replace(ADAPTIVE, axes=(Axis.from_range("parameters", 10_000, 400_000, adaptive=True),)),
    dataclasses.replace(ADAPTIVE, axes=(Axis(name="hidden_size", values=(3, 5, 100)),), adaptive=False, pairs=4),
    dataclasses.replace(GRID, axes=(GRID.axes[0], Axis(name="learning_rate", values=(0.01, 0.5)))),
    dataclasses.replace(ADAPTIVE, point=Point(model="cnn"), axes=(Axis.from_range("width", 1, 8, adaptive=True),)),
]


@pytest.mark.parametrize("asked", SWEEPS, ids=lambda asked: " ".join(axis.name for axis in asked.axes))
def test_the_command_that_is_shown_asks_for_the_same_points(asked):
    options = command_line.parser().parse_args(shlex.split(describe.build_command(asked))[3:])
    again = dataclasses.replace(build_sweep(options), contenders=asked.contenders)
    assert again.id == asked.id
    assert options.devices == "cpu,cuda:0"


def test_the_settings_are_said_in_a_line_for_a_phone_where_they_are_folded(world, open_page):
    world.has(CPU, GPU)
    assert "Digits · Fully connected · hidden size 16 to 2,048 · CPU, 1 CPU thread, GPU" in words(open_page(PAGE))
