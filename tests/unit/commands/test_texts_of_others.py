"""No command gives the terminal an order, whatever rows, files, classes, jobs, or the command's own words hold."""

import dataclasses
import json
import logging
import re
import shutil

import pytest

from core.classroom.classes import Classes
from core.commands import run
from core.jobs import client
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.progress import Progress, SweepProgress
from core.results import environment, exhibits
from core.results.exchange import export
from core.results.parquet import to_table
from core.results.store import Store
from tests import rows, strangers
from tests.hostile import STRANGER, TEXTS, UNSEEN, bundle

pytestmark = pytest.mark.slow

HERE = environment.read_environment()
OURS = {"machine_id": HERE.machine_id, "torch_version": HERE.torch_version}


@pytest.fixture
def said(command, tmp_path, monkeypatch):
    """What a command says, if it gives no orders."""
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))

    def call(*arguments):
        done = command(*arguments)
        required(done.out + done.err)
        return done

    return call


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store of this machine, everything in it hostile; one study of its own, one by another protocol."""
    folder = tmp_path_factory.mktemp("filled")
    store = Store(folder / "store")
    strangers.fill(store, Store(folder / "gallery"))
    for row in (*strangers.run(run_id="e" * 12, **OURS), *strangers.sweep("f", **OURS)):
        store.add(row)
    for shown in strangers.shows(**OURS):
        exhibits.add_exhibit(store.folder, shown)
    return store


@pytest.fixture
def store(filled, tmp_path):
    """The same for each test, which may write to it."""
    shutil.copytree(filled.folder, tmp_path / "store")
    return Store(tmp_path / "store")


def required(text):
    """Text that a terminal got, if it has none but lines."""
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), ascii(text)
    assert not UNSEEN.search(text), ascii(text)
    return text


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_what_is_stored(said, store, form):
    where = ("--store", store.folder)
    training = ("--dataset", "digits", "--hidden-size", "128", "--batch-size", "64", "--epochs", "100", "--depth", "2")
    varied = ("--dataset", "signal", "--epochs", "10", "--depth", "2", "--batch-size", "64", "--axis", "hidden_size")
    pair = ("--devices", "cpu,cuda:0")
    for words in (
        ("store", "check", *where),
        ("crossover", *where),
        ("crossover", "--machine", HERE.machine_id, *where),
        ("run", *training, *pair, *where),
        ("sweep", *varied, "--values", "16,64,256", "--pairs", "5", *pair, *where),
        ("lesson", "moving", *pair, *where),
        ("lesson", "clock", "--clocks", "ours,no_drain", *pair, *where),
        ("store", "compact", *where),
    ):
        print(words) if 0 else None
        done = said(*words, *form)
        assert STRANGER in done.out + done.err, words
        if form and done.out:
            json.loads(done.out)


def test_files_that_are_called_so(said, store, tmp_path):
    for number, name in enumerate(strangers.FILE_NAMES):
        table = to_table(rows.run(run_id=f"{number:012x}", **strangers.free()))
        (tmp_path / f"{name}.parquet").write_bytes(export(table, "parquet"))
        said("store", "import", tmp_path / f"{name}.parquet", "--store", store.folder)
        (tmp_path / f"{name} torn.parquet").write_bytes(b"torn")
        said("store", "import", tmp_path / f"{name} torn.parquet", "--store", store.folder)
        said("store", "export", tmp_path / f"{name} out.csv", "--store", store.folder)
        said("store", "export", tmp_path / f"{name}.txt", "--store", store.folder)
        said("store", "check", "--store", tmp_path / name)
        said("store", "check", "--store", tmp_path / f"{name}.txt" / name)
        (tmp_path / f"{name}.csv").write_text(strangers.TIMINGS)
        assert STRANGER in said("crossover", "--csv", tmp_path / f"{name}.csv").out
        said("crossover", "--csv", tmp_path / f"{name}.csv", "--json")
        (tmp_path / f"{name} odd.csv").write_text(strangers.TIMINGS.replace("seconds", f"{TEXTS[14]}\x9b"))
        said("crossover", "--csv", tmp_path / f"{name} odd.csv")
        said("crossover", "--csv", tmp_path / f"{name} none.csv")


def test_devices_that_are_called_so(said, monkeypatch):
    monkeypatch.setattr(run, "require_machine", lambda queue: strangers.machine(gpu=False))
    assert STRANGER in said("devices").out
    assert STRANGER in said("devices", "--json").out


def test_a_class_whose_people_are_called_so(said, tmp_path):
    of = strangers.classroom(Classes(tmp_path / "classes"))
    (tmp_path / "classes" / "\x1b[2J").mkdir()
    (tmp_path / "classes" / ("0" * 16)).mkdir()
    (tmp_path / "classes" / ("0" * 16) / "class.json").write_text(json.dumps({"name": TEXTS[14]}))
    assert STRANGER in said("class", "list").out
    assert STRANGER in said("class", "students", "--code", of.code).out
    said("class", "list", "--json")
    said("class", "students", "--code", of.code, "--json")
    said("class", "remove", "--code", of.code, "--nickname", TEXTS[14])
    students = Classes(tmp_path / "classes").students(Classes(tmp_path / "classes").find(of.code))
    names = [student.nickname for student in students]
    said("class", "merge", "--code", of.code, f"--nickname={names[0]}", f"--into={names[1]}")
    assert STRANGER in said("class", "remove", "--code", of.code, f"--nickname={names[1]}").out
    said("class", "create", "--name", TEXTS[14], "--preset", "disc")
    said("class", "delete", "--code", TEXTS[14])


@pytest.mark.parametrize("word", [text for text in TEXTS[:-1] if len(text) > 2], ids=lambda word: ascii(word)[:20])
def test_what_was_typed(said, capsys, tmp_path, word):
    odd = word.replace("\x00", "")
    for words in (
        (odd,),
        ("run", odd),
        ("run", "--dataset", odd),
        ("run", f"--{odd}"),
        ("run", f"--dataset={odd}", f"--de={odd}"),
        ("run", "--budget", odd),
        ("run", "--hidden-size", odd),
        ("run", "--devices", odd),
        ("sweep", "--axis", odd, "--values", odd),
        ("sweep", "--pairs", odd),
        ("crossover", "--devices", odd),
        ("crossover", "--basis", odd),
        ("crossover", "--machine", odd, "--store", tmp_path),
        ("lesson", odd),
        ("lesson", "clock", "--clocks", odd),
        ("store", odd),
        ("class", "create", "--days", odd),
        ("class", "measure", "--code", odd, "--nickname", odd),
    ):
        try:
            said(*words)
        except SystemExit:
            required("".join(capsys.readouterr()))


def test_a_job_that_says_so(tmp_path, monkeypatch, capsys):
    text = bundle(10)
    told = SweepProgress(done=1, total=3, size_label=TEXTS[14], notes=(TEXTS[14], TEXTS[15], text))
    job = Job(id="1", question=rows.EXPERIMENT, store=tmp_path, fresh=False, created_at="", message=text)

    def follow(queue, job_id, on_change):
        on_change(job)
        for sweep in (None, told):
            on_change(dataclasses.replace(job, state="running", progress=Progress(phase=TEXTS[14], sweep=sweep)))
        return dataclasses.replace(job, state="failed")

    monkeypatch.setattr(client, "follow_job", follow)
    run.show_job_progress(Queue(tmp_path), job)
    shown = "".join(capsys.readouterr())
    assert shown.count("owned") > 3
    required(shown.replace("\r", "\n"))  # with which the bar begins its line anew


def test_what_is_logged_where_nobody_has_set_up_a_log(said, capsys):
    said("store", "check", "--store", "nowhere")
    facts = ("core.jobs.queue", logging.WARNING, "", 1, "The job %s is passed over.", (TEXTS[14],), None)
    logging.lastResort.handle(logging.LogRecord(*facts))
    assert "owned" in required(capsys.readouterr().err)
