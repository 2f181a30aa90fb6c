"""What machines that share a store tell each other."""

import dataclasses
import json
import os
import time

import pytest

from core.jobs.shared import board
from core.jobs.shared.board import Board, Question
from core.jobs.shared.members import Member
from tests.integration.scripted_worker import sweep

QUESTION = Question(sweep=sweep(), spread="shared")
MEMBER = Member(host="lab-1", machine_id="aaaaaaaaaaaa", cpu="Test CPU", devices=("Test CPU",))


@pytest.fixture
def at(tmp_path):
    return board.board_of(tmp_path / "store")


def test_a_question_is_open_until_it_is_taken_away(at):
    assert at.questions() == []
    at.ask(QUESTION)
    at.ask(QUESTION)
    assert at.questions() == [QUESTION]
    assert at.is_open(QUESTION.id)
    at.close(QUESTION.id)
    assert not at.is_open(QUESTION.id)
    assert at.questions() == []


def test_the_same_sweep_spread_in_another_way_is_another_question():
    assert QUESTION.id != dataclasses.replace(QUESTION, spread="everywhere").id


def test_who_is_there_is_told_until_it_leaves(at):
    at.tell(MEMBER)
    at.tell(dataclasses.replace(MEMBER, host="lab-2", state="measuring", question=QUESTION.id))
    assert [member.host for member in at.members()] == ["lab-1", "lab-2"]
    at.leave("lab-1")
    assert [member.host for member in at.members()] == ["lab-2"]


def test_who_said_nothing_for_long_is_not_there(at, tmp_path):
    at.tell(MEMBER)
    before = time.time() - board.PRESENT_S - 1
    os.utime(tmp_path / "store/shared/machines/lab-1.json", (before, before))
    assert at.members() == []


@pytest.mark.parametrize("state", ["finished", "failed", "stopped"])
def test_how_a_machine_ended_is_kept_when_it_has_left(at, state):
    ended = dataclasses.replace(MEMBER, state=state, question=QUESTION.id, message="A sentence.", done=4)
    at.tell(ended)
    at.leave(MEMBER.host)
    assert at.ends(QUESTION.id) == {"lab-1": ended}
    at.forget_ends(QUESTION.id)
    assert at.ends(QUESTION.id) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"[" * 100_000,
        json.dumps({"sweep": {}, "spread": "shared"}).encode(),
        json.dumps({"sweep": QUESTION.sweep.to_json(), "spread": "nowhere"}).encode(),
        b"x" * (board.MOST_BYTES + 1),
    ],
)
def test_what_is_no_question_of_ours_is_passed_over(at, content):
    at.place.write("questions/other.json", content)
    at.place.write("machines/other.json", content)
    at.ask(QUESTION)
    assert at.questions() == [QUESTION]
    assert at.members() == []


def test_code_of_others_is_never_a_question(at):
    data = QUESTION.sweep.to_json()
    own = {"training": "evil.py:build", "source_hash": "0" * 16, "size": 8}
    data |= {"point": own, "axes": [{"name": "size", "values": [8, 16]}], "folder": "/tmp"}
    at.place.write("questions/own.json", json.dumps({"sweep": data, "spread": "shared"}).encode())
    assert at.questions() == []


def test_a_name_of_a_machine_leads_nowhere_else(at):
    told = dataclasses.asdict(MEMBER) | {"host": "../../etc"}
    at.place.write("machines/x.json", json.dumps(told).encode())
    assert at.members() == []


def test_points_are_held_apart(at):
    first, second = (at.lease(QUESTION.id, part, "lab-1") for part in ("one", "two"))
    assert first.take()
    assert second.take()
    assert at.held(QUESTION.id) == {"one", "two"}
    assert not at.lease(QUESTION.id, "one", "lab-2").take()
    assert at.lease(QUESTION.id, "one", "lab-1").take()  # the same machine's, made anew


def test_what_a_dead_machine_held_is_held_no_more(at, tmp_path):
    assert at.lease(QUESTION.id, "one", "lab-1").take()
    [claim] = (tmp_path / "store/shared/claims" / QUESTION.id / "one").iterdir()
    before = time.time() - board.LEASE_S - 1
    os.utime(claim, (before, before))
    assert at.held(QUESTION.id) == set()
    assert at.lease(QUESTION.id, "one", "lab-2").take()


def test_the_board_of_a_plain_folder_lies_within_it_and_is_no_row(tmp_path):
    at = board.board_of(tmp_path / "store")
    at.ask(QUESTION)
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["shared"]
    assert isinstance(at, Board)


def long_ago(at, tmp_path, folder, seconds):
    for file in (tmp_path / "store/shared" / folder).iterdir():
        before = time.time() - seconds
        os.utime(file, (before, before))


def test_a_question_that_nobody_follows_lapses_and_can_still_be_seen_and_asked_again(at, tmp_path):
    at.ask(QUESTION)
    at.follow(QUESTION.id)
    long_ago(at, tmp_path, "questions", 2 * board.LAPSE_S)
    assert at.questions() == [QUESTION]
    long_ago(at, tmp_path, "followed", board.LAPSE_S + 60)
    assert at.questions() == []
    assert at.asked(lapsed=True) == {QUESTION.id: QUESTION}
    assert board.LAPSE_S < at.alone_s()[QUESTION.id] < board.LAPSE_S + 600
    at.follow(QUESTION.id)
    assert at.questions() == [QUESTION]
    at.close(QUESTION.id)
    assert at.alone_s() == {}
