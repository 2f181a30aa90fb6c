"""The host's settings: what the defaults allow, what a file changes, and that a broken one allows nothing."""

import os
import re

import pytest

from core.errors import CrossoverError, DamagedFile, InvalidValue, NotAllowed
from core.files.project import PROJECT
from core.question import policy
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import FIELDS
from core.question.policy import Policy
from core.question.sweep import Axis, Sweep

LARGEST = Experiment(point=Point(epochs=10_000, hidden_size=16_384, depth=16), budget_s=FIELDS["budget_s"].high)


def sweep(values=(8, 16, 32), **changes):
    axes = (Axis(name="hidden_size", values=values),)
    return Sweep(point=Point(), axes=axes, contenders=(Contender(threads=1), Contender()), **changes)


def written(tmp_path, text):
    file = tmp_path / "crossover.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_a_file_everybody_may_ask_whatever_can_be_asked(tmp_path, monkeypatch):
    monkeypatch.delenv(policy.POLICY_VARIABLE, raising=False)
    monkeypatch.setattr(policy, "POLICY", tmp_path / "none.toml")
    held = policy.load_policy()
    assert held == Policy()
    for asked in (LARGEST, sweep(budget_s=86_400, point_budget_s=3_600), Demonstration(kind="moving")):
        held.check(asked)


def test_every_key_of_a_file_is_read(tmp_path):
    held = Policy.load(
        written(
            tmp_path,
            """
            who_may_run = "signed_in"
            who_may_stop = "asker"
            sign_in_domains = ["school.example"]
            read_only_gallery = true
            banner = "Hello"
            queue_length = 7
            [run]
            seconds = 60
            parameters = 1000
            epochs = 5
            points = 4
            [person]
            seconds_per_day = 600.5
            waiting = 2
            [class]
            mode = false
            create = "command_line"
            [cluster]
            on = ["ray", "ray://head:10001", "ray"]
            who_may_ask = "signed_in"
            host_names = true
            """,
        )
    )
    assert (held.who_may_run, held.who_may_stop, held.read_only_gallery) == ("signed_in", "asker", True)
    assert (held.banner, held.queue_length, held.sign_in_domains) == ("Hello", 7, ("school.example",))
    assert held.run == policy.RunBudget(seconds=60, parameters=1000, epochs=5, points=4)
    assert held.person == policy.PersonBudget(seconds_per_day=600.5, waiting=2)
    assert held.classes == policy.ClassMode(mode=False, create="command_line")
    assert held.cluster == policy.Cluster(on=("ray", "ray://head:10001"), who_may_ask="signed_in", host_names=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('who_may_run = "all"', "who_may_run must be one of everybody, signed_in,"),
        ("who_may_run = 3", "who_may_run must be "),
        ('[cluster]\non = "ray"', "cluster.on must be a list of ways such as"),
        ('[cluster]\non = ["ray://head"]', "one of ray, ray://HOST:PORT"),
        ('[cluster]\non = ["ray://head:1; rm"]', "cluster.on must be "),
        ('[cluster]\nwho_may_ask = "me"', "(got 'me')"),
        ("whomayrun = 3", "key must be one of "),
        ("[run]\nsecond = 3", "key must be one of run.seconds, "),
        ("run = 3", "run must be a table, written [run]"),
        ("[run]\nseconds = -1", "run.seconds must be "),
        ("[run]\nseconds = nan", "run.seconds must be "),
        ("[run]\nepochs = 1.5", "run.epochs must be a whole number"),
        ("queue_length = true", "queue_length must be "),
        ("read_only_gallery = 1", "read_only_gallery must be true or false"),
        (f'banner = "{"x" * 501}"', "must be text of at most 500 characters"),
        ('sign_in_domains = "school.example"', "sign_in_domains must be "),
        ('[class]\ncreate = "code"', "class.code_hash must be "),
        ('[class]\ncode_hash = "secret"', "class.code_hash must be "),
        ("who_may_run = ", "it is incomplete or not valid TOML. Invalid value (at end of document)."),
        ("", 'does not say who may run something. Set who_may_run to one of "everybody", "signed_in", "nobody".'),
        ("# who_may_run", "does not say who may run something"),
        ("read_only_gallery = true\n[run]\nepochs = 5", "does not say who may run something"),
        ("\0" * 1067, "it is incomplete or not valid TOML"),
        ("queue_length = " + "[" * 3_000 + "]" * 3_000, "it is nested too deeply"),
        ("queue_length = " + "[" * 200 + "]" * 200, "queue_length must be "),
        ("queue_length = 0x" + "f" * 5_000, "a value is too large or nested too deeply"),
        ("queue_length = " + "9" * 5_000, "Exceeds the limit"),
    ],
)
def test_a_broken_file_is_named_in_one_sentence_and_nothing_may_run(tmp_path, monkeypatch, text, sentence):
    file = written(tmp_path, text)
    with pytest.raises(CrossoverError, match=re.escape(sentence)):
        Policy.load(file)
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(file))
    held = policy.load_policy()
    assert sentence in held.fault
    assert held.read_only_gallery
    with pytest.raises(NotAllowed, match=re.escape(sentence)):
        held.check(Experiment(point=Point()))


def test_a_file_that_is_named_and_missing_allows_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(tmp_path / "gone.toml"))
    with pytest.raises(NotAllowed, match=r"gone\.toml, the settings file of this host, does not exist"):
        policy.load_policy().check(Experiment(point=Point()))


@pytest.mark.parametrize(
    ("put", "sentence"),
    [
        (lambda path: path.mkdir(), "it cannot be read: Is a directory"),
        (lambda path: path.symlink_to(path), "it cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to(path.with_name("nowhere")), "does not exist"),
        (lambda path: os.mkfifo(path), "it is not a regular file"),
        (lambda path: path.write_bytes(b""), "does not say who may run something"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "it is not text"),
    ],
    ids=["folder", "link loop", "link to nothing", "pipe", "nothing in it", "no text"],
)
@pytest.mark.parametrize("named", [True, False])
def test_whatever_stands_where_the_file_should_be_allows_nothing(tmp_path, monkeypatch, put, sentence, named):
    file = tmp_path / "crossover.toml"
    put(file)
    if named:
        monkeypatch.setenv(policy.POLICY_VARIABLE, str(file))
    else:
        monkeypatch.delenv(policy.POLICY_VARIABLE, raising=False)
        monkeypatch.setattr(policy, "POLICY", file)
    assert policy.find_policy_file() == file
    assert sentence in policy.load_policy().fault
    with pytest.raises(NotAllowed, match=re.escape(sentence)):
        policy.load_policy().check_open()


def test_a_file_that_held_and_is_gone_does_not_open_the_host(tmp_path, monkeypatch):
    file = written(tmp_path, 'who_may_run = "nobody"')
    monkeypatch.delenv(policy.POLICY_VARIABLE, raising=False)
    monkeypatch.setattr(policy, "POLICY", file)
    assert policy.load_policy().who_may_run == "nobody"
    file.unlink()
    assert "does not exist" in policy.load_policy().fault
    file.write_text('who_may_run = "everybody"', encoding="utf-8")
    assert policy.load_policy().who_may_run == "everybody"


def test_what_could_not_be_read_for_a_moment_is_read_again(tmp_path, monkeypatch):
    file = written(tmp_path, 'who_may_run = "everybody"')
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(file))
    with monkeypatch.context() as moment:
        moment.setattr(policy, "read_toml", none_left)
        assert "Too many open files" in policy.load_policy().fault
    assert policy.load_policy().fault == ""


def none_left(path):
    raise DamagedFile(path.name, "it cannot be read: Too many open files")


@pytest.mark.parametrize("linked", [False, True])
def test_a_change_of_the_file_holds_at_once_behind_a_link_too(tmp_path, monkeypatch, linked):
    file = written(tmp_path, 'who_may_run = "nobody"')
    named = tmp_path / "linked.toml" if linked else file
    if linked:
        named.symlink_to(file)
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(named))
    assert policy.load_policy().who_may_run == "nobody"
    file.write_text('who_may_run = "everybody"  # longer')
    os.utime(file, ns=(1, 1))
    assert policy.load_policy().who_may_run == "everybody"


@pytest.mark.parametrize(
    ("limit", "asked", "sentence"),
    [
        ({"seconds": 59}, Experiment(point=Point()), "may take 1 min, but a run may take 59 s on this host"),
        ({"seconds": 619}, sweep(), "This run may take 10 min 20 s, but a run may take 10 min 19 s"),
        ({"parameters": 26_121}, Experiment(point=Point()), "26,122 parameters, but a run may have 26,121"),
        ({"parameters": 26_121}, sweep(values=(8, 128)), "26,122 parameters"),
        ({"epochs": 99}, Experiment(point=Point()), "100 epochs, but a run may have 99"),
        ({"epochs": 99}, Demonstration(kind="clock", point=Point()), "100 epochs, but a run may have 99"),
        ({"points": 2}, sweep(), "3 points, but a run may have 2"),
    ],
)
def test_what_exceeds_a_budget_is_refused_with_the_budget_and_what_meets_it_is_not(limit, asked, sentence):
    with pytest.raises(NotAllowed, match=re.escape(sentence)):
        Policy(run=policy.RunBudget(**limit)).check(asked)
    ((name, value),) = limit.items()
    Policy(run=policy.RunBudget(**{name: value + 1})).check(asked)


def test_a_host_may_refuse_lanes_that_compile_first():
    compiled = Experiment(point=Point(), contenders=(Contender(), Contender.parse("cpu+compiled")))
    host = Policy(run=policy.RunBudget(compiled=False))
    with pytest.raises(NotAllowed, match="doesn't run compiled variants"):
        host.check(compiled)
    host.check(Experiment(point=Point(), contenders=(Contender(), Contender.parse("cpu+fused"))))
    Policy().check(compiled)


@pytest.mark.parametrize("key", ["run]\nseconds", "person]\nseconds_per_day"])
def test_seconds_need_not_be_whole(tmp_path, key):
    held = Policy.load(written(tmp_path, f'who_may_run = "everybody"\n[{key} = 60.5'))
    assert 60.5 in (held.run.seconds, held.person.seconds_per_day)


def test_no_number_beyond_all_bounds_is_taken():
    with pytest.raises(InvalidValue, match=r"run\.parameters"):
        Policy.parse({"run": {"parameters": 10**13}})


def test_the_example_for_a_hosted_server_is_read_and_is_safe():
    held = Policy.load(PROJECT / "crossover.hosted.toml")
    assert held.who_may_run == "signed_in"
    assert held.who_may_stop == "asker"
    assert held.classes.create != "anybody"
    assert held.read_only_gallery
    assert 0 < held.run.seconds <= held.person.seconds_per_day
    with pytest.raises(NotAllowed):
        held.check(LARGEST)


def test_the_documentation_explains_every_key_with_its_default():
    text = (PROJECT / "docs" / "hosting.md").read_text()
    for table, part in (
        ("", Policy()),
        ("run.", Policy().run),
        ("person.", Policy().person),
        ("class.", Policy().classes),
        ("cluster.", Policy().cluster),
    ):
        for name in vars(part):
            if name not in ("run", "person", "classes", "cluster", "fault"):
                assert f"| `{table}{name}` |" in text
