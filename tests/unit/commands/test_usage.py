"""What is typed wrong is a usage error in one sentence, before anything starts."""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from core.__main__ import COMMANDS, parser
from core.files.project import PROJECT


def test_each_command_is_found_by_its_word_among_all(capsys):
    for ask in ("", *COMMANDS):
        with pytest.raises(SystemExit):
            parser(ask).parse_args(["--help"])
        listed = capsys.readouterr().out
        assert all(f"    {word} " in listed or f"    {word}\n" in listed for word in ([ask] if ask else COMMANDS))


@pytest.mark.parametrize("word", COMMANDS)
def test_help_has_no_name_that_only_the_code_knows(word, capsys):
    with pytest.raises(SystemExit):
        parser(word).parse_args([word, "--help"])
    assert not re.findall(r"[A-Z]+_S\b", capsys.readouterr().out)


def parsers(word: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser of a command, and those of its actions, by what is typed."""
    queue = [(word, parser(word)._subparsers._group_actions[0].choices[word])]
    while queue:
        typed, found = queue.pop()
        groups = [action for action in found._actions if isinstance(action, argparse._SubParsersAction)]
        queue += [(f"{typed} {name}", below) for group in groups for name, below in group.choices.items()]
        yield typed, found


@pytest.mark.parametrize("word", COMMANDS)
def test_every_option_says_what_it_is_and_its_default(word):
    for typed, found in parsers(word):
        for action in found._actions:
            if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
                continue
            text = action.help or ""
            assert re.search(r"default: |required|: .*\.$", text), f"{typed} {action.dest}: {text}"


@pytest.mark.parametrize("word", COMMANDS)
def test_every_help_ends_with_examples_that_can_be_typed(word, capsys):
    for typed, found in parsers(word):
        lines = found.format_help().rstrip().partition("\nexamples:\n")[2].splitlines()
        assert lines, typed
        for line in lines:
            words = shlex.split(line.strip().removeprefix("python -m core "))
            assert line.strip().removeprefix("python -m core ").startswith(typed)
            assert parser(word).parse_args(words).command


def test_a_command_loads_no_other():
    code = "from core.__main__ import parser; import sys; parser('devices'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("core.commands.")}
    assert loaded.isdisjoint(f"core.commands.{name}" for name in COMMANDS.values() if name not in ("machines", "run"))


def test_a_sweep_of_this_machine_loads_nothing_that_asks_others():
    code = "from core.__main__ import parser; import sys; parser('sweep'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert {"core.jobs.cluster", "core.jobs.cluster_node"}.isdisjoint(done.stdout.split())
    assert "core.answer.recorded_machines" not in done.stdout


@pytest.mark.parametrize("word", ["", "--help", "nonsense"])
def test_names_of_commands_load_none_of_them_and_nothing_that_is_large(word):
    code = "from core.__main__ import parser; import sys; parser(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, word], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint(f"core.commands.{name}" for name in COMMANDS.values())
    assert loaded.isdisjoint({"numpy", "pyarrow", "psutil", "pandas", "scipy"})
    assert {name for name in loaded if name.startswith("core.") and name.count(".") > 1} == set()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--hidden-size", "0"), "--hidden-size must be a whole number between 1 and"),
        (("--batch-size", "9999999"), "--batch-size must be"),
        (("--learning-rate", "nan"), "(got nan)"),
        (("--devices", "gpu"), "(got 'gpu')"),
        (("--devices", "cpu,cpu"), "different devices"),
        (("--budget", "0"), "--budget must be a number between 1 and 86,400 (got 0)."),
        (("--size", "5"), "--size must be given with --training"),
        (("--preset", "disc", "--model", "cnn"), "--preset must be given without --dataset and --model"),
    ],
)
def test_a_value_out_of_range_is_a_usage_error_in_one_sentence(command, arguments, sentence):
    done = command("run", "--devices", "cpu", *arguments)
    assert done.status == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.parametrize("arguments", [(), ("run", "--dataset", "cifar"), ("run", "--speed", "11"), ("store",)])
def test_words_it_does_not_know_are_a_usage_error(command, arguments):
    with pytest.raises(SystemExit) as left:
        command(*arguments)
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "--dataset", "cifar"), "--dataset: invalid choice: 'cifar'"),
        (("run", "--budget", "abc"), "--budget must be a number (got 'abc')."),
        (("run", "--size", "1.5"), "--size must be a whole number (got '1.5')."),
        (("run", "--store", ""), "--store must be a folder, or an address"),
        (("store", "check", "--store", "ftp://x/y"), "--store must be a folder, or an address with "),
        (("sweep", "--spread", "half"), "--spread: invalid choice: 'half'"),
        (("case", "none-such"), "name: invalid choice: 'none-such' (choose from 'simple-2d'"),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_that_says_where_more_is(command, capsys, arguments, sentence):
    with pytest.raises(SystemExit):
        command(*arguments)
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1
    assert "--help" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("lesson", "moving", "--clocks", "ours"),
            "--clocks must be omitted, as the lesson moving has none",
        ),
        (("case", "--run"), "case must be one of simple-2d"),
    ],
)
def test_an_option_that_would_mean_nothing_is_refused(command, arguments, sentence):
    done = command(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(sentence)


@pytest.mark.parametrize("where", ["core.commands.machines.print_devices", "core.__main__.parser"])
def test_an_interrupt_before_anything_is_followed_is_no_traceback(command, monkeypatch, where):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    done = command("devices")
    assert (done.status, done.out, done.err) == (1, "", "Stopped.\n")
