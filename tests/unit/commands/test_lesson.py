"""`lesson` without a measuring process: what is stored is shown, what is wrong is said."""

import pytest

from core.jobs import client
from core.jobs.job import Job
from core.question.demonstrations import LESSON_KINDS, RECIPES
from core.question.experiment import Contender
from core.results import environment, exhibits
from tests import exhibited


@pytest.fixture
def stored(tmp_path):
    """A store that has the clock lesson, shown here."""
    here = environment.read_environment()
    shown = exhibited.exhibit(
        exhibited.CLOCK, machine_id=here.machine_id, torch_version=here.torch_version, cpu_name=here.cpu_name
    )
    exhibits.add_exhibit(tmp_path / "store", shown)
    return shown


def test_what_the_store_has_is_shown_without_giving_it_again(command, tmp_path, stored):
    done = command("lesson", "clock", "--devices", "cpu@1", "--store", tmp_path / "store")
    assert done.status == 0
    assert "As the disc tutorial" in done.out
    assert "--fresh" in done.err


def test_the_document_for_scripts_is_the_exhibit(command, tmp_path, stored):
    document = command("lesson", "clock", "--devices", "cpu@1", "--store", tmp_path / "store", "--json").json
    assert document["from_store"] is True
    assert (document["id"], document["torch_version"]) == (stored.id, stored.torch_version)
    assert document["demonstration"] == stored.demonstration.to_json()
    assert [variant["name"] for variant in document["content"]["variants"]] == ["ours", "no_drain", "disc"]


def test_a_file_that_is_none_is_named_on_the_side(command, tmp_path, stored):
    (tmp_path / "store" / exhibits.EXHIBITS_FOLDER / "bad.json").write_text("{")
    done = command("lesson", "clock", "--devices", "cpu@1", "--store", tmp_path / "store")
    assert done.status == 0
    assert "bad.json was skipped" in done.err


@pytest.fixture
def following(monkeypatch):
    """The job that would be followed; it ends at once without anything shown."""
    asked = []

    def follow(queue, job: Job) -> Job:
        asked.append(job)
        return client.stop(queue, job.id)

    monkeypatch.setattr("core.commands.run.show_job_progress", follow)
    return asked


def test_anything_else_is_asked_of_the_measuring_process(command, tmp_path, stored, following):
    store = ("--store", tmp_path / "store")
    assert command("lesson", "clock", "--devices", "cpu@1", *store, "--fresh").status == 1
    assert command("lesson", "clock", "--devices", "cpu@1", *store, "--clocks", "no_drain, disc").status == 1
    assert command("lesson", "first_step", "--devices", "cpu,cpu@1", "--preset", "disc", *store).status == 1
    fresh, some, first = (job.demonstration for job in following)
    assert fresh == exhibited.CLOCK
    assert some.recipes == ("ours", "no_drain", "disc")
    assert (first.point.dataset, first.contenders) == ("disc", (Contender(), Contender(threads=1)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("clock", "--clocks", "sundial"), f"one of {', '.join(RECIPES)}"),
        (("clock", "--budget", "0"), "--budget must be "),
        (("clock", "--batch-size", "0"), "--batch-size must be "),
        (("first_step", "--devices", "cpu"), "two different devices"),
        (("moving", "--devices", "tpu"), "--devices must be "),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(command, tmp_path, arguments, words):
    done = command(
        "lesson", *arguments, *(() if "--devices" in arguments else ("--devices", "cpu")), "--store", tmp_path
    )
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_the_help_names_every_lesson(command, capsys):
    with pytest.raises(SystemExit):
        command("lesson", "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert all(kind in said for kind in LESSON_KINDS)
