"""`python -m core class`: make, list and delete classes, and measure for one, with a script in place of runs."""

import dataclasses
import json
import shlex

import pyarrow.parquet as pq
import pytest

from core.__main__ import main, parser
from core.classroom import results, students
from core.classroom.classes import Classes
from core.commands import classroom, run
from core.jobs import client
from core.jobs.queue import Queue
from core.question.policy import Policy
from tests import rows
from tests.students import change_database


@pytest.fixture
def classes(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    monkeypatch.setenv("CROSSOVER_JOBS", str(tmp_path / "jobs"))
    return Classes(tmp_path / "classes")


def question(*words):
    return classroom.build_class_question(parser().parse_args(["class", "create", "--name", "x", *words]))


def test_a_class_is_made_listed_and_deleted(classes, capsys):
    assert main(["class", "create", "--name", "Physics 7b", "--preset", "disc", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    of = classes.find(made["code"])
    assert students.matches(made["teacher_code"], of.secret_hash)
    assert main(["class", "list"]) == 0
    assert f"{of.code}  Physics 7b: Points in a disc, 0 students" in capsys.readouterr().out
    assert main(["class", "delete", "--code", of.code.lower()]) == 0
    assert classes.all() == []
    assert main(["class", "delete", "--code", of.code]) == 1
    assert "There is no class with this code" in capsys.readouterr().err


def test_a_class_that_is_damaged_is_named_and_deleted_by_its_code_alone(classes, capsys):
    assert main(["class", "create", "--name", "Physics 7b", "--preset", "disc"]) == 0
    (of,) = classes.all()
    change_database(classes, "UPDATE classes SET question = '{'")
    capsys.readouterr()
    assert main(["class", "list"]) == 0
    assert f"{of.id}: its record is damaged: Expecting property name" in capsys.readouterr().out
    assert main(["class", "list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["damaged"]) == [of.id]
    assert main(["class", "delete", "--code", of.code]) == 0
    assert classes.damaged() == {}


def test_students_are_named_admitted_put_together_and_removed(classes, capsys):
    assert main(["class", "create", "--name", "Physics 7b", "--preset", "disc", "--admission"]) == 0
    (of,) = classes.all()
    ada, bob, eve = (classes.join(of, nickname)[0] for nickname in ("ada", "bob", "eve"))
    code = ["--code", of.code]
    assert main(["class", "admit", *code, "--nickname", "ADA"]) == 0
    assert "1 student admitted" in capsys.readouterr().out
    assert main(["class", "list"]) == 0
    assert "1 student and 2 waiting to be admitted" in capsys.readouterr().out
    classes.store(of, ada).add(rows.trial())
    assert main(["class", "students", *code]) == 0
    assert capsys.readouterr().out == (
        "ada: 1 row\nbob: 0 rows, waiting to be admitted\neve: 0 rows, waiting to be admitted\n"
    )
    assert main(["class", "merge", *code, "--nickname", "ada", "--into", "bob"]) == 0
    assert main(["class", "admit", *code]) == 0
    assert main(["class", "remove", *code, "--nickname", "eve"]) == 0
    capsys.readouterr()
    assert main(["class", "students", *code, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["students"]
    assert (line["nickname"], line["rows"], line["waiting"], line["fault"]) == ("bob", 1, False, "")
    assert main(["class", "remove", *code, "--nickname", "nobody"]) == 2
    assert "--nickname must be " in capsys.readouterr().err
    assert [student.id for student in classes.students(of)] == [bob.id] != [eve.id]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--code", "KX4-M9P-QS8", "--nickname", "ada"], "(got 'KX4-M9P-QS8')"),
        (["--code", "KX4-M9P-QS7", "--nickname", "ada\u3164"], "letters of one script"),
    ],
)
def test_what_a_file_would_be_refused_for_is_said_before_anything_is_measured(classes, capsys, words, sentence):
    assert main(["class", "measure", *words, "--preset", "signal"]) == 2
    assert sentence in capsys.readouterr().err
    assert not Queue().folder.exists()


def test_the_codes_are_printed_for_the_teacher(classes, capsys):
    assert main(["class", "create", "--name", "Physics 7b", "--preset", "mnist-linear"]) == 0
    printed = capsys.readouterr().out
    (of,) = classes.all()
    assert f"Join code: {of.code}" in printed
    assert "Teacher's code: " in printed


def test_a_hosts_code_is_printed_with_what_its_file_needs(capsys):
    assert main(["class", "code"]) == 0
    code, _, text = capsys.readouterr().out.partition("\n")
    import tomllib

    held = Policy.parse(tomllib.loads(text))
    assert held.classes.create == "code"
    assert students.matches(code, held.classes.code_hash)


@pytest.mark.parametrize(
    "words",
    [
        "--preset disc",
        "--preset disc --scale full",
        "--preset mnist-linear",
        "--preset fashion-cnn",
        "--preset signal --axis hidden_size --values 16,64 --epochs 2",
        "--axis hidden_size --range 8:64 --dataset signal --samples 500 --shuffle false",
        "--axis hidden_size=8,16 --axis batch_size=16,32 --pairs 8 --budget 30",
    ],
)
def test_what_a_student_is_told_to_type_asks_the_same(words):
    asked = question(*shlex.split(words))
    assert question(*shlex.split(asked.words)) == asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--name", "x"], "--preset must be one of disc"),
        (["--name", "<b>", "--preset", "disc"], "(got '<b>')"),
        (["--name", "x", "--preset", "disc", "--days", "0"], "(got 0)"),
    ],
)
def test_what_is_not_allowed_is_said_in_one_sentence(classes, capsys, words, sentence):
    assert main(["class", "create", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert classes.all() == []


def test_measuring_writes_one_file_with_code_and_nickname(classes, tmp_path, monkeypatch, capsys):
    asked = question("--preset", "signal")
    found = [
        dataclasses.replace(row, run_id=f"{number:012x}", trial_id=f"{number:012x}-{row.trial_id[-1]}")
        for number, point in enumerate(asked.points)
        for row in rows.run({"cpu@1": 1e-3, "cpu": 5e-4}, point=point, outcome="timed", pairs=6)
    ]

    def follow(queue: Queue, job):
        assert job.question == asked.with_contenders(job.question.contenders)
        return dataclasses.replace(job, state="finished")

    monkeypatch.setattr(run, "show_job_progress", follow)
    monkeypatch.setattr(client, "load_job_rows", lambda queue, job: found)
    monkeypatch.chdir(tmp_path)
    words = ["--code", "kx4m9pqa", "--nickname", "ada l.", "--preset", "signal", "--devices", "cpu@1,cpu"]
    assert main(["class", "measure", *words, "--store", str(tmp_path / "results")]) == 0
    assert "10 rows written to class-KX4M-9PQA-ada-l.parquet" in capsys.readouterr().out
    said = pq.read_schema(tmp_path / "class-KX4M-9PQA-ada-l.parquet").metadata
    assert (said[results.CODE_KEY], said[results.NICKNAME_KEY]) == (b"KX4M-9PQA", b"ada l.")
