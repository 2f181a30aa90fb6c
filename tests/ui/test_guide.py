"""A guided start: what a link says on top, what it fixes and hides, and what it begins with."""

import re

import pytest

from core.question.demonstrations import Demonstration
from core.question.describe import control
from core.question.experiment import Contender, Point
from core.question.presets import PRESETS
from pages.shared import layout, links, session
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words

CROSSOVER, TUTORIALS, LESSONS = "/crossover", layout.TUTORIALS, layout.LESSONS


def slider(app, key):
    found = [entry for entry in (*app.slider, *app.select_slider) if entry.key == key]
    assert len(found) == 1, key
    return found[0]


def forge(app, key, value):
    """What a browser cannot say of a locked control, but a message of one's own can."""
    slider(app, key)._value = value


def keyed(app):
    kinds = ("slider", "select_slider", "selectbox", "multiselect", "radio", "toggle", "number_input", "button_group")
    return {entry.key: entry for kind in kinds for entry in getattr(app, kind, ()) if entry.key}


def test_a_locked_setting_stands_at_the_value_of_the_link_whatever_the_session_says(world, open_page):
    world.has(CPU)
    app = open_page(hidden_size="256", depth="3", lock="hidden_size,depth")
    assert slider(app, "hidden_size").disabled
    assert slider(app, "depth").disabled
    assert not slider(app, "epochs").disabled
    facts = app.markdown[0].value
    forge(app, "depth", 7)
    forge(app, "hidden_size", 512)
    app = checked(app.run())
    assert slider(app, "depth").value == 3
    assert slider(app, "hidden_size").value == 256
    assert app.markdown[0].value == facts


def test_a_locked_setting_that_the_link_leaves_out_stands_at_its_default(world, open_page):
    world.has(CPU)
    app = open_page(lock="depth")
    forge(app, "depth", 9)
    assert slider(checked(app.run()), "depth").value == 2


def test_lock_all_leaves_open_only_what_it_names(world, open_page):
    world.has(CPU, GPU)
    app = open_page(lock="all,-hidden_size")
    drawn = {key: entry for key, entry in keyed(app).items() if key in links.SETTINGS}
    assert {"dataset", "hidden_size", "devices", "budget_s", "seed"} <= set(drawn)
    assert [key for key, entry in drawn.items() if not entry.disabled] == ["hidden_size"]


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        (CROSSOVER, links.SWEEP_SETTINGS),
        (TUTORIALS, links.TUTORIAL_SETTINGS),
        (LESSONS, links.LESSON_SETTINGS),
    ],
)
def test_lock_all_reaches_every_setting_of_every_page_and_no_view(world, open_page, page, settings):
    world.has(CPU, GPU)
    app = open_page(page, lock="all")
    drawn = {key: entry for key, entry in keyed(app).items() if key in settings}
    assert drawn
    assert all(entry.disabled for entry in drawn.values())
    assert all(not entry.disabled for key, entry in keyed(app).items() if key.startswith("predict_"))


def test_a_hidden_setting_keeps_its_value_and_cannot_be_changed(world, open_page):
    world.has(CPU)
    app = open_page(depth="5", hide="depth")
    assert slider(app, "depth").value == 5
    assert slider(app, "depth").disabled
    assert any(".st-key-depth { display: none; }" in part.proto.body for part in app.get("html"))


def test_a_name_that_the_page_has_not_gets_one_sentence_and_the_others_hold(world, open_page):
    world.has(CPU)
    app = open_page(lock="depht,depth", hide="</style><script>")
    assert "lock must be one of all, sizes, dataset," in words(app)
    assert slider(app, "depth").disabled
    assert not any("</style><script>" in part.proto.body for part in app.get("html"))


def test_the_instruction_of_a_link_is_plain_text_of_bounded_length(world, open_page):
    world.has(CPU)
    app = open_page(text="**Set** the [depth](https://example.org) <b>to 4</b>." + "x" * 1000)
    (shown,) = [info.value for info in app.info if "shared this link" in info.value]
    assert r"\*\*Set\*\* the \[depth\]" in shown
    assert r"\<b\>" in shown
    assert shown.replace("\\", "").count("x") < 500
    assert shown.endswith("…")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fills_the_controls_of_compare_at_either_scale(world, open_page, name):
    world.has(CPU)
    for scale in ("class", "full"):
        app = open_page(preset=name, scale=scale)
        point = PRESETS[name].point_at_scale(scale)
        held = {key: entry.value for key, entry in keyed(app).items()}
        for field in ("dataset", "samples", "model", "batch_size", "epochs", "learning_rate", "data_path", "shuffle"):
            assert held[field] == getattr(point, field), (field, scale)
        assert "preset" not in app.query_params
        assert not app.error


@pytest.mark.parametrize("name", [name for name, of in PRESETS.items() if of.axes])
def test_a_preset_fills_the_controls_of_crossover(world, open_page, name):
    world.has(CPU)
    app = open_page(CROSSOVER, preset=name)
    axis = PRESETS[name].class_axes[0]
    held = {key: entry.value for key, entry in keyed(app).items()}
    assert held["axis"] == axis.name
    assert tuple(held[f"{axis.name}_range"]) == (axis.values[0], axis.values[-1])
    assert held["dataset"] == PRESETS[name].point.dataset
    assert not app.error


def test_a_preset_can_be_locked_and_what_else_the_link_says_goes_before(world, open_page):
    world.has(CPU)
    app = open_page(preset="signal", epochs="7", lock="all", text="Press Run")
    assert slider(app, "epochs").value == 7
    assert slider(app, "hidden_size").value == 1000
    assert slider(app, "hidden_size").disabled
    assert "Press Run" in words(app)


def test_a_preset_that_is_none_is_named(world, open_page):
    world.has(CPU)
    app = open_page(preset="discs")
    assert "Preset must be one of Points in a disc, Signal and background," in words(app)


def test_a_guided_start_survives_a_look_at_another_page(world, open_page):
    world.has(CPU)
    app = open_page(depth="4", lock="depth", text="Press Run")
    app.query_params.clear()
    assert "Press Run" not in words(checked(app.switch_page(layout.DEVICES).run()))
    app = checked(app.switch_page(layout.EXPLORE).run())
    assert "Press Run" in words(app)
    assert slider(app, "depth").disabled
    assert app.query_params["lock"] in ("depth", ["depth"])


def test_every_page_has_its_line_in_the_table_of_links(world, open_page):
    world.has(CPU)
    assert {open_page(page).session_state["_here"].name for page in layout.FILES} == set(links.PAGES)


def test_no_two_runs_share_an_entry_of_the_menu_which_notes_whether_its_page_ran(world, open_page):
    world.has(CPU)
    open_page()
    one, other = layout.menu(), layout.menu()
    assert [page.url_path for page in one] == [page.url_path for page in other]
    assert not {id(page) for page in one} & {id(page) for page in other}


def test_a_control_that_is_not_in_the_table_of_links_cannot_be_drawn(world, open_page):
    world.has(CPU)
    with pytest.raises(LookupError, match="no control of the page"):
        session.bind_control("colour")


def test_a_link_to_the_job_of_another_page_leads_there(world, open_page):
    world.has(CPU)
    job = world.submit(Demonstration(kind="clock", point=Point(), contenders=(Contender(),), recipes=("ours",)))
    for page in ("/compare", CROSSOVER):
        assert "This link is to a demonstration, which this page does not show." in words(open_page(page, job=job.id))


def test_a_link_for_a_class_is_the_task_without_its_answer(world, open_page):
    world.has(CPU)
    world.keep(rows.run())
    app = open_page("/compare", run=rows.RUN_ID, depth="4")
    app.session_state["share"] = app.session_state["share_class"] = True
    whole, for_class, *_ = [block.value for block in checked(app.run()).code if block.value.startswith("?")]
    assert f"run={rows.RUN_ID}" in whole
    assert "run=" not in for_class
    assert "depth=4" in for_class


def test_a_link_for_a_class_to_a_tutorial_does_not_say_what_its_teacher_expects(world, open_page):
    world.has(CPU)
    app = open_page(TUTORIALS, tutorial="signal", predict_signal="at no hidden size", shown="disc")
    app.session_state["share"] = app.session_state["share_class"] = True
    whole, for_class = [block.value for block in checked(app.run()).code if block.value.startswith("?")]
    assert "predict_signal" in whole
    assert for_class == "?tutorial=signal"


@pytest.mark.parametrize(
    ("page", "link", "named"),
    [
        (
            "/compare",
            {"hidden_size": "nine", "batch_size": "-4", "model": "bert"},
            ("hidden_size", "batch_size", "model"),
        ),
        ("/compare", {"devices": "gpu!", "budget_s": "soon"}, ("device", "budget_s")),
        ("/compare", {"run": "x", "job": "y"}, ("run", "job")),
        ("/crossover", {"axis": "colour", "dataset": "cats"}, ("axis", "dataset")),
        ("/crossover", {"study": "<b>", "pairs": "many"}, ("study", "pairs")),
        (layout.TUTORIALS, {"tutorial": "nothing", "scale": "huge"}, ("tutorial", "scale")),
        (layout.LESSONS, {"lesson": "nothing"}, ("lesson",)),
        (layout.LESSONS, {"lesson": "learning", "seeds": "many", "margin": "9"}, ("seeds", "margin")),
        (layout.GALLERY, {"study": "<b>", "run": "../.."}, ("study", "run")),
    ],
)
def test_a_link_with_several_bad_fields_names_each(world, open_page, page, link, named):
    world.has(CPU)
    said = words(open_page(page, **link)).replace("\\", "")
    for name in named:
        assert re.search(rf"(?i){control(name)} must be .* \(got \S+\)\.", said), (name, said)
