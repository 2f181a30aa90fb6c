"""A small part of every fuzzer; `python -m tests.fuzz` runs the whole. And what a fuzzer must notice is noticed."""

import contextlib
import dataclasses
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import pytest

from core.errors import CrossoverError
from tests.fuzz import campaign, classes, entries, files, watching, worlds
from tests.fuzz.__main__ import main
from tests.fuzz.campaign import Fuzzer, Given, Limits
from tests.fuzz.fuzzers import ANY_FILE, FUZZERS
from tests.fuzz.watching import Fault


@dataclass(frozen=True)
class Part:
    """So many cases of a fuzzer, of which so many at least are taken and refused."""

    fuzzer: Fuzzer
    cases: int
    taken: int = 2
    refused: int = 2


PARTS = {
    "files": Part(ANY_FILE, 50),
    "links": Part(FUZZERS["links"], 10),
    "timings": Part(FUZZERS["timings"], 60),
    "exhibits": Part(FUZZERS["exhibits"], 20),
    "parquet": Part(FUZZERS["parquet"], 40),
    "rows": Part(FUZZERS["rows"], 1, taken=1, refused=0),
}
"""Small enough for all of them to take less than half a minute."""

UNMEASURED = Limits(cpu_s=float("inf"))
"""How long something takes is nobody's business here."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, sockets and links are made")


@pytest.mark.parametrize("name", PARTS)
def test_of_a_part_of_its_cases_none_does_what_it_must_not(name, tmp_path):
    part = PARTS[name]
    report = campaign.run(part.fuzzer, range(part.cases), keep=tmp_path / "kept", limits=UNMEASURED, warm_ups=1)
    assert [(failure.number, failure.what, failure.why) for failure in report.failures] == []
    assert report.taken >= part.taken
    assert report.refused >= part.refused, "both must happen for this to mean something"


class Subject:
    """Takes what is given, and does something with it."""

    def __init__(self, does: Callable[[], object]) -> None:
        self._does = does

    def good(self) -> Given:
        return Given(data=b"good", what="good")

    def make(self, draw: Random) -> Given:
        return Given(data=draw.randbytes(8), what="changed")

    def take(self, given: Given, draw: Random, gauge: watching.Gauge) -> bool:
        if given.data != b"good":
            with gauge.part("doing it"):
                self._does()
        return True


def fuzzer(does: Callable[[], object]) -> Fuzzer:
    @contextlib.contextmanager
    def opened(folder: Path) -> Iterator[Subject]:
        yield Subject(does)

    return Fuzzer(name="test", about="", total=3, opened=opened)


def complain() -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logging.getLogger("core.test").exception("caught")


def refuse(text: str) -> Callable[[], object]:
    def refused() -> None:
        raise CrossoverError(text)

    return lambda: watching.said(refused)


FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "raises": (lambda: 1 / 0, "ZeroDivisionError"),
    "signals": (lambda: os.kill(os.getpid(), signal.SIGCONT), "sent signals: os.kill"),
    "signals a group": (lambda: os.killpg(os.getpgid(0), signal.SIGCONT), "sent signals: os.killpg"),
    "signals by another way": (
        lambda: psutil.Process().send_signal(signal.SIGCONT),
        "sent signals: psutil.send_signal",
    ),
    "catches what nobody expected": (complain, "core.test logged"),
    "takes memory": (lambda: bytearray(400 * 2**20), "costs too much: doing it took"),
    "refuses in two lines": (refuse("One.\nTwo."), "letters that end a line"),
    "refuses with an order to a terminal": (refuse("\x1b[2J cleared"), "letters that end a line"),
    "refuses without end": (refuse("x" * 2_000), "a sentence of 2,000 letters"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_must_not_be_is_a_failure_whose_input_is_kept(name, tmp_path):
    does, said = FAULTS[name]
    report = campaign.run(fuzzer(does), range(2), keep=tmp_path, limits=UNMEASURED)
    assert [failure.number for failure in report.failures] == [0, 1]
    assert said in report.failures[0].why
    made = Random(f"{campaign.SEED} test 1").randbytes(8)
    assert report.failures[1].file.read_bytes() == made, "a case follows from its seed and number"


def test_what_takes_long_on_the_processor_is_a_failure(tmp_path):
    report = campaign.run(fuzzer(lambda: None), range(1), keep=tmp_path, limits=Limits(cpu_s=-1.0))
    assert "costs too much: doing it took" in report.failures[0].why


def test_what_is_not_taken_although_nobody_changed_it_ends_the_run(tmp_path):
    never = dataclasses.replace(FUZZERS["policy"], opened=fuzzer(lambda: None).opened)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Subject, "take", lambda *_: False)
        with pytest.raises(Fault, match="policy: what nobody changed is not taken"):
            campaign.run(never, range(1), keep=tmp_path)


def test_what_waits_for_ever_is_interrupted():
    with pytest.raises(Fault, match="it hangs"), watching.patience(0.01):
        signal.pause()


def test_no_signal_is_sent_and_whoever_asks_for_a_process_is_answered():
    with watching.signals() as sent:
        os.kill(os.getpid(), 0)
        with pytest.raises(ProcessLookupError):
            os.kill(os.getpid(), signal.SIGCONT)
    assert len(sent) == 1


@pytest.mark.parametrize("entry", entries.ENTRIES)
def test_what_is_no_file_can_be_put_in_the_place_of_one_and_the_file_put_back(entry, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    before = entries.content(path)
    entries.put(entry, path)
    assert entries.content(path) != before
    entries.remove(path)
    assert list(tmp_path.iterdir()) == []


LOOKS: dict[str, tuple[Callable[[worlds.Inhabited], object], str]] = {
    "removes another student": (lambda world: entries.remove(world.folder / world.path("{ada}")), "looking removed"),
    "changes another file": (lambda world: world.settings.write_text(""), "changed"),
    "mends the file that is damaged": (lambda world: world.restore(), "changed"),
}


@pytest.fixture(scope="class")
def inhabited(tmp_path_factory):
    with worlds.inhabited(tmp_path_factory.mktemp("inhabited")) as world:
        yield world


class TestFilesThatAreGoneOrChanged:
    @pytest.mark.parametrize("name", LOOKS)
    def test_afterwards_are_a_failure(self, name, inhabited):
        does, said = LOOKS[name]
        (kind,) = (kind for kind in classes.KINDS if kind.name == "class-json")
        kind = dataclasses.replace(kind, look=lambda world, place: bool(does(world)) or True, seen=0)
        given = Given(data=b"{", what="a changed file", place=kind.places[0])
        with pytest.raises(Fault, match=said):
            files.Files(inhabited, kind).take(given, Random(1), watching.Gauge())


def test_the_command_line_lists_what_there_is_and_says_what_was_found(tmp_path, capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in FUZZERS)
    assert main(["timings", "--count", "3", "--keep", str(tmp_path)]) == 0
    line = next(line.split() for line in capsys.readouterr().out.splitlines() if "timings" in line)
    assert line[1] == "3"
    with pytest.raises(SystemExit) as left:
        main(["nonsense"])
    assert left.value.code == 2


def test_a_failure_is_told_with_seed_and_number_and_makes_the_exit_status(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(FUZZERS, "timings", dataclasses.replace(fuzzer(lambda: 1 / 0), name="timings"))
    assert main(["timings", "--case", "7", "--seed", "5", "--keep", str(tmp_path)]) == 1
    assert "case 7 of seed 5: changed: ZeroDivisionError" in capsys.readouterr().out
