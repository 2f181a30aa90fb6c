"""Whatever others wrote is text on every page and in every view of it, and in every table that a page draws."""

import dataclasses
import json
import re
import shutil

import pytest
import streamlit as st

from core.answer.gallery import overview as gallery_table
from core.classroom.classes import Classes
from core.jobs import client, process
from core.progress import ContenderProgress, Progress, SweepProgress
from core.question.experiment import Contender
from core.question.policy import POLICY_VARIABLE
from core.question.sweep import Axis, Sweep
from core.results import exchange, exhibits
from core.results.parquet import to_table
from core.results.store import Store
from pages.lessons import view
from pages.shared import layout, session
from tests import rows, strangers
from tests.hostile import STRANGER, TEXTS, UNSEEN, bundle, meanings
from tests.ui import drawn
from tests.ui.conftest import checked, words
from tests.ui.find import button, expected, run_lesson
from tests.ui.taken_along import made, require_file, require_report

MARKS = (STRANGER, ":red", ":small", ":help", ":material/home", ":material_home", ":streamlit:", ":heart:", ":+1:")
MARKS += ("$x$", "alert(", "image ", "s_open", "html_", "fence", "table_open", "[^")
"""What must not be found in what a page makes of Markdown; our own words have none of it."""

COMPARE, CROSSOVER, GALLERY = "/compare", "/crossover", layout.GALLERY
CLASS, LESSONS, TUTORIALS = layout.CLASS, layout.LESSONS, layout.TUTORIALS
OPEN = {"loss": "true", "reports": "true", "blocks": "true", "fingerprints": "true", "more": "true", "stock": "true"}
OPEN |= {"speedup": "true", "lacks": "true", "fingerprint": "true", "recorded_studies": "true", "unread": "true"}
OPEN |= {"recorded_speedup": "true", "results": "true", "filters": "true", "teacher": "true"}

LINK = ("text", "lesson", "lock", "hide", "recorded", "dataset", "devices", "lanes", "run", "batch_size", "beside")

VIEWS = {
    "compare": (COMPARE, {"stock": "true", "more": "true"}),
    "compare, a run": (COMPARE, {"run": rows.RUN_ID, **OPEN}),
    "compare, beside a recorded one": (COMPARE, {"run": rows.RUN_ID, "recorded": "{accelerator}", **OPEN}),
    "compare, a failed run": (COMPARE, {"run": "c" * 12, **OPEN}),
    "compare, a job that runs": (COMPARE, {"job": "{running}"}),
    "compare, a job that failed": (COMPARE, {"job": "{failed}"}),
    "compare, a link": (COMPARE, dict(zip(LINK, TEXTS, strict=False))),
    "crossover": (CROSSOVER, {"recorded_studies": "true"}),
    "crossover, a study": (CROSSOVER, {"study": "{study}", **OPEN}),
    "crossover, beside a recorded one": (CROSSOVER, {"study": "{study}", "recorded": "{accelerator}", **OPEN}),
    "crossover, a job that runs": (CROSSOVER, {"job": "{sweeping}"}),
    "crossover, a link": (
        CROSSOVER,
        dict(zip(("axis", "recorded", "contenders", "also", "text"), TEXTS, strict=False)),
    ),
    "devices": (layout.DEVICES, {}),
    "tutorials": (TUTORIALS, {"tutorial": "signal", "shown": "signal"}),
    "tutorials, a link": (TUTORIALS, {"tutorial": TEXTS[0], "scale": TEXTS[1], "text": TEXTS[2]}),
    "lessons, a link": (LESSONS, {"lesson": TEXTS[0], "data": TEXTS[1], "text": TEXTS[2]}),
    "class, a link": (CLASS, {"class": TEXTS[0], "me": TEXTS[1], "text": TEXTS[2]}),
    "gallery": (GALLERY, OPEN),
    "gallery, trials": (GALLERY, {"view": "Trials", **OPEN}),
    "gallery, machines": (GALLERY, {"view": "Machines", **OPEN}),
    "gallery, a run": (GALLERY, {"run": rows.RUN_ID, "view": "Trials", **OPEN}),
    "gallery, two runs": (GALLERY, {"run": rows.RUN_ID, "beside": "d" * 12, "view": "Trials", **OPEN}),
    "gallery, a study": (GALLERY, {"study": "{study}", **OPEN}),
    "gallery, two studies": (GALLERY, {"study": "{study}", "beside": "{other}", **OPEN}),
    "gallery, filtered": (GALLERY, {"in_machine": "{machine}", "in_device": "{device}", **OPEN}),
}
"""Pages and their links, whose words in braces are names of what is there."""

IN_CLASS = {"a visitor": {"class": "class"}, "a student": {"class": "class", "me": "me"}}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Two stores in which everything is hostile, what they hold being written once, and names of what is there."""
    folder = tmp_path_factory.mktemp("filled")
    store, gallery = Store(folder / "results"), Store(folder / "gallery")
    strangers.fill(store, gallery)
    known = gallery_table.find_study_lines(
        gallery_table.load_overview([(store, "measured here"), (gallery, "came with the app")]).table
    )
    (here,) = {line.id for line in known if line.trial_ids[0].startswith("a")}
    there = next(row for row in gallery.trials() if row.device == "cuda:0")
    return folder, {
        "study": here,
        "other": next(line.id for line in known if line.id != here),
        "accelerator": f"{there.device_name} ({there.machine_id[:6]})",
        "machine": f"{there.cpu_name} ({there.machine_id[:6]})",
        "device": there.device_name,
    }


@pytest.fixture
def foreign(lent, hosted, filled):
    """Names in an app in which everything that others can write is hostile."""
    folder, names = filled
    return {**names, **_jobs(lent(folder))}


@pytest.fixture
def foreign_to_add_to(world, hosted, filled):
    """The same app, whose stores are the test's own."""
    folder, names = filled
    shutil.copytree(folder / "results", world.store.folder)
    shutil.copytree(folder / "gallery", world.gallery.folder)
    return {**names, **_jobs(world)}


@pytest.fixture
def hosted(world, tmp_path, monkeypatch):
    """A host whose settings and machine are hostile, where nothing is measured."""
    (tmp_path / "crossover.toml").write_text(strangers.settings())
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "crossover.toml"))
    monkeypatch.setattr(client, "ensure_worker", lambda *_, **__: None)
    world.queue.worker_file.report(strangers.machine(), process.current_process())


@pytest.fixture
def classroom(tmp_path, monkeypatch):
    """Names in a class in which everybody is called so."""
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    of = strangers.classroom(Classes(tmp_path / "classes"))
    return {"class": of.code, "me": of.me, "of": of}


def _jobs(world):
    text = bundle(0, 1_000)
    failed = world.run(rows.EXPERIMENT)
    world.end(failed, state="failed", message=text)
    told = [ContenderProgress(contender=str(one), steps=5, total_steps=9, step_s=1e-3) for one in ("cpu", "cuda:0")]
    progress = Progress(phase=text, elapsed_s=3.0, budget_s=9.0, contenders=tuple(told))
    asked = dataclasses.replace(rows.EXPERIMENT, budget_s=31.0)
    running = world.run(asked, progress)
    swept = SweepProgress(done=1, total=3, size_label=TEXTS[2], notes=tuple(TEXTS[:-1]))
    sizes = Axis(name="hidden_size", values=tuple(map(float, strangers.SIZES)))
    question = Sweep(point=strangers.TRAINING, axes=(sizes,), contenders=(Contender(), Contender(device="cuda:0")))
    world.end(running, state="crashed", message=text)
    sweeping = world.run(question, dataclasses.replace(progress, sweep=swept))
    return {"failed": failed.id, "running": running.id, "sweeping": sweeping.id}


def require_text(app):
    """Find out whether all on a page that others wrote is text, and nothing that cannot be seen came along."""
    for one in drawn.texts(app):
        assert not UNSEEN.search(one.text), (one.field, ascii(one.text))
        if one.markdown:
            made = [made for made in meanings(one.text) if any(mark in made for mark in MARKS)]
            assert not made, (one.field, made, one.text)
    for text in drawn.cells(app):
        assert not UNSEEN.search(text), ascii(text)
        assert not re.search(r'(^|;)[\s"]*[=+\-@＝＋－＠]', text), ascii(text)
    for spec in drawn.specs(app):
        assert not UNSEEN.search(json.dumps(spec, ensure_ascii=False))
    return app


def wrote(app):
    """What others wrote on a page, the host's banner aside."""
    said = [one.text for one in drawn.texts(app) if one.field != "Text.body"]
    plain = [text.replace("\\", "").replace(":small[]", "") for text in said]
    return [text for text in (*plain, *drawn.cells(app)) if STRANGER in text]


@pytest.mark.parametrize("view", VIEWS)
def test_whatever_others_wrote_is_text_in_every_view_of_every_page(foreign, open_page, view):
    app = require_text(open_page(VIEWS[view][0], **_link(view, foreign)))
    assert wrote(app), "nobody wrote anything"


@pytest.mark.parametrize("view", IN_CLASS)
def test_whatever_others_wrote_is_text_in_a_class(foreign, classroom, open_page, view):
    link = {name: classroom.get(value, value) for name, value in IN_CLASS[view].items()}
    app = require_text(open_page(CLASS, **link, **OPEN))
    assert wrote(app)


@pytest.mark.parametrize("gpu", [True, False], ids=["measured", "recorded"])
@pytest.mark.parametrize("name", view.LESSONS)
def test_a_lesson_shows_as_text_what_it_was_given(foreign_to_add_to, world, open_page, name, gpu):
    world.queue.worker_file.report(strangers.machine(gpu=gpu), process.current_process())
    for job in world.queue.jobs():
        world.end(job, state="finished")
    app, _ = run_lesson(world, open_page, name)
    asked = [job for job in world.queue.jobs() if job.demonstration or job.experiment]
    kept(world, asked)
    app = require_text(expected(checked(app.run()), name))
    assert wrote(app)
    app.text_input(key="student").set_value(TEXTS[6])
    app.text_area(key=f"answer_{name}").set_value("\n".join(TEXTS).encode(errors="replace").decode())
    app = require_text(checked(button(app, "Create the report").click().run()))
    _, files = app.session_state[session.REPORTS][name]
    require_report(files)


def kept(world, jobs):
    """What answers the jobs, kept as if it was measured here."""
    for number, job in enumerate(jobs):
        if job.demonstration:
            shown = next(shown for shown in strangers.shows() if shown.kind == job.demonstration.kind)
            exhibits.add_exhibit(world.store.folder, dataclasses.replace(shown, demonstration=job.demonstration))
        elif job.experiment:
            times = {str(one): 1e-3 / (place + 1) for place, one in enumerate(job.experiment.contenders)}
            facts = {**strangers.here(), "run_id": f"{number:012x}", "budget_s": 20.0}
            world.keep(rows.run(times, point=job.experiment.point, **facts))


def test_a_teacher_sees_as_text_what_students_are_called(foreign, classroom, open_page):
    app = open_page(CLASS, **{"class": classroom["class"], **OPEN})
    next(field for field in app.text_input if field.label == "Teacher's code").set_value(classroom["of"].secret)
    app = require_text(checked(button(app, "Open the teacher's view").click().run()))
    assert len(app.multiselect[0].options) == 4
    app.multiselect[0].set_value(list(classroom["of"].students[:2]))
    app = require_text(checked(app.run()))
    assert len(app.radio[-1].options) == 2
    assert len(wrote(app)) > 10


def test_a_file_and_its_name_are_text_before_anything_of_it_is_kept(foreign, open_page):
    table = to_table(rows.run(run_id="9" * 12, **strangers.free()))
    for data, told in ((exchange.export(table, "parquet"), "would be added"), (b"torn", "was not imported")):
        app = open_page(GALLERY, add="true")
        app.file_uploader[0].upload(f"{strangers.FILE_NAMES[0]}.parquet", data)
        app = require_text(checked(app.run()))
        assert told in words(app)
    assert "owned" in words(app)


def test_anyones_timings_are_text(foreign, open_page):
    app = open_page(CROSSOVER, timings="true", own_speedup="true")
    app.file_uploader[0].upload(f"{strangers.FILE_NAMES[2]}.csv", strangers.TIMINGS.encode())
    app = require_text(checked(app.run()))
    assert sum("calc" in text for text in wrote(app)) > 5
    named = _named(drawn.specs(app)[0])
    assert len(named) == 2
    assert named < set(drawn.said(drawn.charted(app)[0])), "marks are found by the names that they have in the rows"
    app = open_page(CROSSOVER, timings="true")
    app.file_uploader[0].upload(f"{strangers.FILE_NAMES[2]}.csv", "\n".join(TEXTS[:-2]).encode(errors="replace"))
    assert "has no header row" in words(require_text(checked(app.run())))


@pytest.mark.parametrize("broken", [True, False], ids=["fault", "banner"])
def test_what_a_host_wrote_is_text(foreign, world, tmp_path, open_page, broken):
    (tmp_path / "crossover.toml").write_text(strangers.settings(broken=broken))
    app = require_text(open_page(CROSSOVER))
    assert STRANGER in "".join(box.value for box in (*app.text, *app.error)).replace("\\", "")


DOWNLOADS = ("compare, a run", "crossover, a study", "gallery, a run", "gallery, a study", "gallery, two studies")


@pytest.mark.parametrize("view", DOWNLOADS)
def test_what_is_taken_along_runs_nowhere(foreign, open_page, monkeypatch, view):
    taken = _taken(monkeypatch)
    open_page(VIEWS[view][0], **_link(view, foreign))
    assert taken
    for name, data in taken.items():
        assert re.fullmatch(r"[\w.-]+", name), name
        if name.endswith((".csv", ".py")) or name == next(iter(key for key in taken if key.endswith(".html")), ""):
            require_file(name, made(data))


def test_what_a_teacher_takes_along_runs_nowhere(foreign, classroom, open_page, monkeypatch):
    app = open_page(CLASS, **{"class": classroom["class"], **OPEN})
    next(field for field in app.text_input if field.label == "Teacher's code").set_value(classroom["of"].secret)
    taken = _taken(monkeypatch)
    checked(button(app, "Open the teacher's view").click().run())
    assert len(taken) == 3
    for name, data in taken.items():
        require_file(name, made(data))


def _taken(monkeypatch):
    """By the name of its file, what each button that is drawn from now on downloads."""
    taken = {}

    real = st.download_button

    def drawn_button(label, data, file_name=None, *args, **kwargs):
        taken[file_name] = data
        return real(label, data, file_name, *args, **kwargs)

    monkeypatch.setattr(st, "download_button", drawn_button)
    return taken


def _named(part):
    """Names of devices in a specification."""
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    named = {part} if isinstance(part, str) and (STRANGER in part or "calc" in part) else set()
    return named.union(*map(_named, parts))


def _link(view, names):
    return {name: names.get(value.strip("{}"), value) for name, value in VIEWS[view][1].items()}
