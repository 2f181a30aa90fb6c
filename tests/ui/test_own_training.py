"""A training of one's own on the pages: offered on one's own machine alone, by its name alone, and never run there."""

import dataclasses
import sys

import pytest

from core.answer import custom_findings, remedies
from core.files import sources
from core.progress import ContenderProgress, Progress
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from pages.shared import custom_files, permits, queries
from tests import rows
from tests.own_trainings import NAME, PLAIN, asked, own_run
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import alts, button, chart_data, control, drawn, picture, table

COMPARE, CROSSOVER = "/compare", "/crossover"
GALLERY = "pages/gallery/gallery.py"
RUNS = "raise SystemExit('a page has run it')\n"
"""Begins a file that must only be read."""


@pytest.fixture
def file(world, tmp_path, monkeypatch):
    """A file that the server was started with, whose import would be the end of this process."""
    path = tmp_path / "mine" / "my_training.py"
    path.parent.mkdir()
    path.write_text(RUNS + PLAIN)
    monkeypatch.setenv(custom_files.TRAINING_VARIABLE, str(path))
    world.has(CPU)
    return path


def control_drawn(app):
    return "training" in drawn(app)


def offered(monkeypatch, *texts):
    monkeypatch.delenv(custom_files.TRAINING_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "argv", ["streamlit_app.py", *texts])
    return list(custom_files.list_custom_files())


def test_a_file_is_offered_by_what_the_server_was_started_with(tmp_path, monkeypatch):
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("def build(size, device): ...\n")
    other.write_text(
        "def small(size, device): ...\ndef _hidden(size, device): ...\ndef helper(x): ...\nbuild = small\n"
    )
    (tmp_path / "notes.py").write_text("x = 1\n")
    assert offered(monkeypatch) == []
    assert offered(monkeypatch, "--training", str(one)) == ["one.py:build"]
    assert offered(monkeypatch, f"--training={other}") == ["other.py:small", "other.py:build"]
    assert offered(monkeypatch, "--training", f"{other}:anything") == ["other.py:anything"]
    assert offered(monkeypatch, "--training", str(tmp_path)) == ["one.py:build", "other.py:small", "other.py:build"]
    assert offered(monkeypatch, "--training", str(tmp_path / "gone.py")) == []
    assert offered(monkeypatch, "--training") == []
    monkeypatch.setenv(custom_files.TRAINING_VARIABLE, str(one))
    assert list(custom_files.list_custom_files()) == ["one.py:build"]


def test_a_file_that_cannot_be_parsed_is_offered_and_its_own_traceback_tells(tmp_path, monkeypatch):
    (tmp_path / "torn.py").write_text("def build(:\n")
    assert offered(monkeypatch, "--training", str(tmp_path / "torn.py")) == ["torn.py:build"]
    assert offered(monkeypatch, "--training", str(tmp_path)) == []


def test_nothing_of_ones_own_is_offered_unless_the_server_was_started_with_it(world, open_page):
    world.has(CPU)
    app = open_page(COMPARE)
    assert not control_drawn(app)
    assert custom_files.START_COMMAND in words(app)
    assert not control_drawn(open_page(CROSSOVER))


def test_compare_asks_for_the_file_and_shows_the_controls_that_mean_something(file, world, open_page):
    app = open_page(COMPARE)
    assert custom_files.START_COMMAND not in words(app)
    app = checked(control(app, "training").set_value(NAME).run())
    assert drawn(app) == {"training", "pairs", "budget_s"}
    assert sources.hash_sources(file)[:6] in words(app)
    checked(control(app, "size").set_value(512).run())
    checked(button(app, "Run").click().run())

    (job,) = world.queue.jobs()
    wanted = Experiment(
        point=Point(training=NAME, source_hash=sources.hash_sources(file), size=512),
        contenders=job.experiment.contenders,
        folder=str(file.parent),
        whole=False,
    )
    assert job.experiment == wanted
    assert "my_training" not in sys.modules


def test_crossover_varies_its_size(file, world, open_page):
    app = open_page(CROSSOVER, training=NAME, size_range=["16", "1024"])
    assert control(app, "size_range").value == (16, 1024)
    assert {"dataset", "model", "axis", "also"}.isdisjoint(drawn(app))
    checked(button(app, "Find the crossover").click().run())

    (job,) = world.queue.jobs()
    assert isinstance(job.sweep, Sweep)
    assert job.sweep.adaptive
    assert (job.sweep.axes[0].name, job.sweep.axes[0].values[0], job.sweep.axes[0].values[-1]) == ("size", 16, 1024)
    assert (job.sweep.point.training, job.sweep.folder) == (NAME, str(file.parent))


@pytest.mark.parametrize("page", [COMPARE, CROSSOVER])
@pytest.mark.parametrize(
    "name", ["../../x.py:build", "other.py:build", "my_training.py:other", "/etc/passwd", "{folder}/my_training.py"]
)
def test_a_link_to_anything_else_is_ignored_with_a_sentence(file, world, open_page, page, name):
    (file.parent / "other.py").write_text(RUNS)
    app = open_page(page, training=name.format(folder=file.parent))
    assert "is not offered here" in words(app)
    assert control(app, "training").value == ""
    assert "training" not in app.query_params
    assert "dataset" in drawn(app)


def test_a_link_to_a_training_means_nothing_where_none_is_offered(world, open_page):
    world.has(CPU)
    app = open_page(COMPARE, training=NAME, size="512")
    assert "is not offered here" in words(app)
    assert not control_drawn(app)
    assert "training" not in app.query_params


def test_a_link_with_a_size_that_none_can_have_is_told_so(file, open_page):
    assert "(got 'many')" in words(open_page(COMPARE, training=NAME, size="many"))


def test_a_host_offers_none_and_runs_none(file, world, open_page, tmp_path, monkeypatch):
    settings = tmp_path / "policy.toml"
    settings.write_text('who_may_run = "everybody"\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(settings))
    app = open_page(COMPARE, training=NAME)
    assert not control_drawn(app)
    assert custom_files.START_COMMAND not in words(app)
    assert "never run on a host" in permits.refusal(asked(file))


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", {"Host": "localhost:8501"}),
        ("::ffff:192.0.2.7", {"Host": "localhost:8501"}),
        (None, {"Host": "evil.example"}),
        (None, {"Host": "localhost:8501", "X-Forwarded-For": "192.0.2.7"}),
    ],
    ids=["from-elsewhere", "from-elsewhere-within-ipv6", "by-a-name-that-points-here", "through-a-proxy"],
)
def test_who_is_not_at_this_machine_is_offered_none_and_may_run_none(
    file, world, open_page, monkeypatch, address, headers
):
    class Elsewhere:
        ip_address, cookies, url = address, {}, "http://localhost:8501"

    Elsewhere.headers = headers
    monkeypatch.setattr(permits.st, "context", Elsewhere)
    assert not control_drawn(open_page(COMPARE, training=NAME))
    assert "users at the machine" in permits.refusal(asked(file))


@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501"])
@pytest.mark.parametrize("address", [None, "::ffff:127.0.0.1", "127.0.0.1"])
def test_who_sits_at_this_machine_is_known_by_its_own_names(file, monkeypatch, host, address):
    class Here:
        ip_address, cookies, url, headers = address, {}, None, {"Host": host}

    monkeypatch.setattr(permits.st, "context", Here)
    assert list(permits.trainings()) == [NAME]


def test_a_file_that_has_changed_or_is_another_may_not_be_run_as_it_was(file, world, tmp_path):
    before = asked(file)
    assert permits.refusal(before) == ""
    file.write_text(RUNS + PLAIN + "\n# changed\n")
    assert "my_training.py has changed since" in permits.refusal(before)
    (tmp_path / "strange.py").write_text(PLAIN)
    assert "is not among the files" in permits.refusal(asked(tmp_path / "strange.py"))


def test_the_source_that_is_shown_is_that_of_the_file_as_it_is(file, open_page):
    app = open_page(COMPARE, training=NAME)
    file.write_text(RUNS + PLAIN + "\n# changed\n")
    assert sources.hash_sources(file)[:6] in words(checked(app.run()))


# What is shown of rows


def test_a_run_shows_its_parts_its_findings_and_what_is_not_known(file, world, open_page):
    parts = {f"breakdown_{part}_s": (1e-3,) * 3 for part in ("loader", "transfer", "step")}
    run = world.keep(own_run(own_first_loss=0.7, own_evaluation=0.75, **parts))
    app = open_page(COMPARE, run=run[0].run_id, training=NAME, size="64")
    said = words(app)
    assert "my_training.py:build (your script, source 9e80da), size 64" in said
    assert chart_data(app, "Time per step by part")["part"][:3] == ["loader", "transfer", "step"]
    assert all(sentence in said.replace("\\", "") for sentence in custom_findings.finding_sentences(run[0]))
    assert "its parameters (parameters), the operations of a step (flops)" in said
    assert {"Epoch", "Test accuracy"}.isdisjoint(table(app, "Its own evaluation"))
    assert "to repeat it, its own file my_training.py is needed" in said
    for placeholder in ("1 sample", "batch 1", "own on own", "epoch", "Same weights", "What would help?"):
        assert placeholder not in said


def test_what_would_help_it_is_measured_from_outside_and_told(file, world, open_page):
    source = sources.hash_sources(file)
    run = world.keep(own_run(source_hash=source))
    app = open_page(COMPARE, run=run[0].run_id, training=NAME, size="64")
    assert "What would help?" in words(app)
    checked(next(each for each in app.button if each.key == f"help-{run[0].trial_id}").click().run())
    (job,) = world.queue.jobs()
    assert [str(each) for each in job.experiment.contenders] == [
        "cpu@1",
        "cpu@1+compiled",
        "cpu@1+kept",
        "cpu@1+bf16",
    ]
    assert (job.experiment.point, job.experiment.folder) == (Point.from_row(run[0]), str(file.parent))
    world.end(job, state="finished")

    laned = {"cpu@1": 1e-3, "cpu@1+compiled": 5e-4, "cpu@1+kept": 1e-3}
    values = dataclasses.asdict(run[0])
    known = [
        dataclasses.replace(
            row,
            **{name: values[name] for name in ("training", "source_hash", "size", "dataset", "model", "outcome")},
            execution="compiled" if "compiled" in row.contender else "eager",
            host_memory="kept" if "kept" in row.contender else "returned",
            lane_loss=() if row.contender == "cpu@1" else (0.7, 0.6),
            reference_loss=() if row.contender == "cpu@1" else (0.7, 0.6),
        )
        for row in rows.run(laned, run_id="f" * 12)
    ]
    told = [each.sentence for found in remedies.lane_remedies(known) for each in found.same]
    kept = world.keep(known)
    said = words(open_page(COMPARE, run=kept[0].run_id, training=NAME, size="64"))
    assert all(sentence in said for sentence in told)
    assert "this helps 1 CPU thread most: compiled" in said


def test_what_one_device_alone_told_is_empty_for_the_others(file, world, open_page):
    first, second = own_run(own_evaluation=0.75)
    run = world.keep([first, dataclasses.replace(second, own_evaluation=None)])
    app = open_page(COMPARE, run=run[0].run_id, training=NAME, size="64")
    assert table(app, "Its own evaluation")["Its own evaluation"].tolist() == ["0.750", ""]


def test_what_other_batches_did_stands_with_what_would_help(file, world, open_page):
    run = world.keep(own_run(own_given_s=(1e-3,) * 7, own_larger_s=(5e-4,) * 7))
    app = open_page(COMPARE, run=run[0].run_id, training=NAME, size="64")
    told = [part.value.replace("\\", "") for part in app.main if part.type in ("header", "markdown")]
    place = told.index("What would help?")
    assert "1 CPU thread, samples are trained 2.00× as fast in batches four times as large" in told[place + 1]


def test_that_the_file_has_changed_since_is_said_beside_its_rows(file, world, open_page):
    run = world.keep(own_run())
    app = open_page(COMPARE, run=run[0].run_id, training=NAME, size="64")
    assert words(app).count("Nothing unusual") == 1
    assert "my_training.py has changed since: it was source 9e80da" in words(app)
    assert f"source {sources.hash_sources(file)[:6]}, not 9e80da" in words(app)
    assert button(app, "Measure again").disabled


def test_a_sweep_of_it_is_a_study_without_placeholders_everywhere(file, world, open_page):
    for size, second in ((16, 3e-3), (64, 1.1e-3), (256, 3e-4)):
        world.keep(own_run(size, (1e-3, second)))
    (line,) = queries.list_study_lines()
    title = "my_training.py:build (your script, source 9e80da)"
    app = open_page(CROSSOVER, study=line.id)
    assert control(app, "training").value == NAME
    assert control(app, "size_range").value == (16, 256)
    assert title in words(app)
    assert table(app, "Training")["Training"].tolist() == [title]
    assert "Costs to include" not in {found.label for found in app.segmented_control} | set(table(app, "Vary"))

    app = open_page(GALLERY, study=line.id)
    assert title in words(app)
    assert "Parts of a step by size on 1 CPU thread" in alts(app)
    for placeholder in ("own on own", "batch 1", "1 sample"):
        assert placeholder not in words(app)


def test_the_gallery_lists_and_filters_them(world, open_page):
    world.has(CPU)
    world.keep([*own_run(), *rows.run()])
    shown = table(open_page(GALLERY, view="Trials", in_training=NAME), "Model")
    assert set(shown["Model"]) == {"my_training.py:build, size 64"}
    assert not shown[["Parameters", "Batch"]].notna().any(axis=None)
    both = table(open_page(GALLERY, view="Trials", in_model=["own", "mlp"]), "Model")
    assert len(both) == 4


def test_two_runs_of_it_differ_in_what_was_asked_and_in_nothing_that_has_no_meaning(world, open_page):
    world.has(CPU)
    first, second = (world.keep(own_run(size)) for size in (64, 256))
    app = open_page(GALLERY, run=first[0].run_id, beside=second[0].run_id)
    differs = table(app, "What")
    assert differs.loc[differs[""] == "Settings", "What"].tolist() == ["size"]


def test_a_file_that_fails_shows_its_traceback_as_text(file, world, open_page):
    traceback = 'Traceback (most recent call last):\n  File "my_training.py", line 3, in step\nValueError: <b>*no*</b>'
    told = f"my_training.py failed.\n{traceback}"
    job = world.end(world.run(asked(file)), state="failed", message=told)
    app = open_page(COMPARE, job=job.id)
    (said,) = [error.value for error in app.error]
    assert said.replace("\\", "") == "my_training.py failed."
    assert traceback in [code.value for code in app.code]


def test_while_it_runs_no_number_of_steps_is_made_up(file, world, open_page):
    one = ContenderProgress(contender="cpu@1", steps=1_234, step_s=1e-3, loss_steps=(1, 9), losses=(0.7, 0.6))
    job = world.run(asked(file, pairs=10), Progress(phase="training", pairs=4, elapsed_s=12, contenders=(one,)))
    assert job.share == 0.4
    app = open_page(COMPARE, job=job.id)
    said = words(app)
    assert "step 1,234" in said
    assert "step 1,234 of" not in said
    assert "left" not in said
    assert "nats" not in str(app.get("vega_lite_chart")[0].proto.spec)


def test_measured_sizes_of_an_own_training_are_drawn_without_a_network_or_a_prediction(file, world, open_page):
    for size in (32, 64, 128):
        world.keep(own_run(size, source_hash=sources.hash_sources(file)))
    shown = picture(open_page(COMPARE, training=NAME, size="64", devices=["cpu@1", "cpu@2"]))
    assert [point[0] for point in shown["curves"][0]["points"]] == [32, 64, 128]
    assert (shown["layers"], shown["band"], shown["steps"]) == ([], None, [])
    assert shown["axis"]["name"] == "size"
