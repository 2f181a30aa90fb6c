"""What a person reads on every page, in its main states, is words and not the identifiers of links and columns.

Links, commands and code show them, where one copies them.
"""

import re

import pytest

from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER
from core.progress import ContenderProgress, Progress
from core.question.experiment import Contender, Point
from core.question.fields import DATA_PATHS
from core.question.presets import PRESETS
from core.question.published import find_case
from core.question.sweep import Axis, Sweep
from core.results import exhibits
from pages.shared import custom_files, layout, links
from tests import exhibited, rows, students, studies
from tests.own_trainings import NAME, PLAIN, own_run
from tests.ui import drawn
from tests.ui.conftest import CPU, GPU, Stores, checked
from tests.ui.find import button, table

COPIED = ("Code.", "TextArea.placeholder")
"""Texts that are there to be copied."""

CONTENDER = r"(?<![\w/.-])(?:cpu|cuda:\d)(?:@\d+)?(?:\+\w+)*(?![\w/.])"
WORDS = ("mlp", "cnn", "doubling-mlp", "fashion-mnist", "hidden_size", "batch_size", "learning_rate", "data_path")
WORDS += ("loader_workers", "budget_s", "channels_last", "with_transfer", "cold_start", "as_given", "out_of_memory")
WORDS += ("budget_spent", *(path for path in DATA_PATHS if "_" in path))
IDENTIFIER = re.compile(rf"{CONTENDER}|(?<![\w-])(?:{'|'.join(WORDS)})(?![\w-])")

LANES = {"cpu": 1e-3, "cpu+compiled10": 4e-4, "cpu+fused": 9e-4}
LANES_RUN = "a" * 12

MEASURED_CASE = "many-threads"

OPEN = {"loss": "true", "reports": "true", "blocks": "true", "speedup": "true", "results": "true", "lacks": "true"}

SWEEP = Sweep(
    point=Point(),
    axes=(Axis(name="hidden_size", values=(16, 64)),),
    contenders=(Contender(threads=1), Contender()),
)

VIEWS = {
    "front": ("/", {}),
    "compare": ("/compare", {}),
    "compare, a run": ("/compare", {"run": rows.RUN_ID, **OPEN}),
    "compare, a run with lanes": ("/compare", {"run": LANES_RUN, **OPEN}),
    "compare, a run under way": ("/compare", {"job": "{job}"}),
    "crossover": ("/crossover", {"recorded_studies": "true"}),
    "crossover, a study": ("/crossover", {"study": "{study}", **OPEN}),
    "tutorials": (layout.TUTORIALS, {"tutorial": "signal", "shown": "signal"}),
    "lessons": (layout.LESSONS, {}),
    "cases": (layout.CASES, {}),
    "cases, one": (layout.CASES, {"case": "many-threads"}),
    "cases, one of a file": (layout.CASES, {"case": "double-precision"}),
    "gallery": (layout.GALLERY, {}),
    "gallery, published": (layout.GALLERY, {"view": "Published"}),
    "gallery, trials": (layout.GALLERY, {"view": "Trials"}),
    "gallery, machines": (layout.GALLERY, {"view": "Machines"}),
    "gallery, a study": (layout.GALLERY, {"study": "{study}", **OPEN}),
    "gallery, a run": (layout.GALLERY, {"run": rows.RUN_ID, **OPEN}),
    "gallery, two studies side by side": (layout.GALLERY, {"study": "{study}", "beside": ["{other}"], **OPEN}),
    "gallery, two runs side by side": (layout.GALLERY, {"run": rows.RUN_ID, "beside": LANES_RUN, **OPEN}),
    "gallery, a published study": (layout.GALLERY, {"study": "xgboost"}),
    "gallery, filters": (layout.GALLERY, {"filters": "true", "in_model": "lstm"}),
    "class": (layout.CLASS, {}),
    "cases, one that was measured": (layout.CASES, {"case": MEASURED_CASE}),
    **{f"tutorials, {name}": (layout.TUTORIALS, {"tutorial": name, "shown": name}) for name in PRESETS},
    **{f"lessons, {name}": (layout.LESSONS, {"lesson": name, "shown": name}) for name in links.LESSON_TITLES},
    "a sweep under way": ("/crossover", {"job": "{sweep}"}),
    "a run that is not there": ("/compare", {"run": "e" * 12}),
    "a study that is not there": ("/crossover", {"study": "e" * 12}),
    "values that are none": ("/compare", {"hidden_size": "0", "dataset": "none", "data_path": "none"}),
    "an axis that is none": ("/crossover", {"axis": "none"}),
}


def read(app):
    """Every text that a person reads, tables and rows of charts included, without what is code or an address."""
    said = [one.text for one in drawn.texts(app) if not one.field.startswith(COPIED)]
    texts = (text.replace("\\", "").replace(":small[]", "") for text in (*said, *drawn.cells(app)))
    return [re.sub(r"```.*?```|`[^`]*`|https?://\S+|\S*\?\S*=\S*", "", text, flags=re.S) for text in texts]


def identifiers(app):
    """Every identifier that is read on a page, after the beginning of its text."""
    return [(text[:120], match[0]) for text in read(app) for match in IDENTIFIER.finditer(text)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Stores with a run, one with lanes, two studies and what a lesson showed; names of the studies."""
    folder = tmp_path_factory.mktemp("filled")
    of = Stores.of(folder)
    named = {"study": studies.stored(of)}
    other = studies.sweep("b")
    shown = rows.run(
        {"cpu@1": 1e-3, "cpu@4": 2e-3}, run_id="c" * 12, point=find_case(MEASURED_CASE).point(), budget_s=30.0
    )
    lanes = rows.run(LANES, run_id=LANES_RUN, point=Point(epochs=50))
    of.keep([*rows.run(), *lanes, *studies.rows_of(other), *shown])
    exhibits.add_exhibit(of.gallery.folder, exhibited.clock({"ours": 1.0, "no_drain": 0.2}))
    return folder, {**named, "other": other.id}


@pytest.fixture
def full(lent, filled):
    """A machine with a GPU, on which all that was measured, and a run is under way; names of what is there."""
    folder, named = filled
    world = lent(folder)
    world.has(CPU, GPU)
    done = (ContenderProgress(contender="cpu", steps=950, total_steps=1_900, step_s=1e-3),)
    running = world.run(progress=Progress(phase="training", contenders=done))
    return {**named, "job": running.id, "sweep": world.submit(SWEEP).id}


@pytest.fixture
def own_file(world, tmp_path, monkeypatch):
    """A machine with a training of its user's own, of which two sizes were measured."""
    path = tmp_path / "my_training.py"
    path.write_text(PLAIN)
    monkeypatch.setenv(custom_files.TRAINING_VARIABLE, str(path))
    world.has(CPU)
    for size in (64, 256):
        world.keep(own_run(size, own_first_loss=0.7, own_evaluation=0.75))


@pytest.fixture
def school(world, tmp_path, monkeypatch):
    """A class of which one has measured and one has not; what links call it and its student."""
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    world.has(CPU)
    classes = Classes(tmp_path / "classes")
    made, secret = classes.create("Physics 7b", students.QUESTION)
    students.hand_in(classes, made, "Ada")
    student, token = classes.join(made, "Grete")
    classes.predict(made, student, Prediction(winner=CHALLENGER, place=100))
    return {"class": made.code, "me": f"{student.id}.{token}"}, secret


@pytest.mark.parametrize("view", VIEWS)
def test_no_identifier_is_read_on_any_page(full, open_page, view):
    page, link = VIEWS[view]
    named = {
        name: [one.format(**full) for one in value] if isinstance(value, list) else value.format(**full)
        for name, value in link.items()
    }
    assert identifiers(open_page(page, **named)) == []


def test_the_identifiers_of_devices_are_read_in_the_column_of_what_stands_in_commands_alone(world, open_page):
    world.has(CPU, GPU)
    app = open_page(layout.DEVICES)
    assert identifiers(app) == [("cpu", "cpu"), ("cuda:0", "cuda:0")]
    assert list(table(app, "In commands")["In commands"]) == ["cpu", "cuda:0"]


OWN = {
    "compare": ("/compare", {"training": NAME, "size": "64"}),
    "compare, a run": ("/compare", {"training": NAME, "size": "64", "run": f"{64:012x}", **OPEN}),
    "crossover": ("/crossover", {"training": NAME}),
    "gallery, a run": (layout.GALLERY, {"run": f"{64:012x}", **OPEN}),
}


@pytest.mark.parametrize("view", OWN)
def test_no_identifier_is_read_of_a_training_of_ones_own(own_file, open_page, view):
    page, link = OWN[view]
    assert identifiers(open_page(page, **link)) == []


def test_no_identifier_is_read_in_a_class(school, open_page):
    link, secret = school
    assert identifiers(open_page(layout.CLASS, **link)) == []
    app = open_page(layout.CLASS, **{"class": link["class"], "teacher": "true"})
    next(field for field in app.text_input if field.label == "Teacher's code").set_value(secret)
    assert identifiers(checked(button(app, "Open the teacher's view").click().run())) == []
