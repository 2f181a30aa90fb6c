"""Codes: readable, checked without being kept, guessed only slowly."""

import pytest

from core.classroom import codes
from core.classroom.codes import Attempts
from core.errors import NotAllowed


def test_codes_can_be_read_out_and_no_two_are_the_same():
    made = [codes.join_code() for _ in range(200)]
    assert len(set(made)) == 200
    assert not set("".join(made)) & set("01OIL")
    assert all(len(code) == 9 and code[4] == "-" for code in made)


@pytest.mark.parametrize("typed", ["KX4M-9PQA", "kx4m9pqa", " kx4m - 9pqa ", "KX4M 9PQA"])
def test_a_code_is_the_same_however_it_is_typed(typed):
    assert codes.normal(typed) == "KX4M-9PQA"


def test_of_a_secret_only_a_hash_is_kept_and_it_tells_right_from_wrong():
    secret = codes.secret()
    kept = codes.hashed(secret)
    assert secret not in kept
    assert codes.hashed(secret) != kept
    assert codes.matches(secret.lower(), kept)
    assert not codes.matches(codes.secret(), kept)
    assert not codes.matches("", kept)


@pytest.mark.parametrize("kept", ["", "scrypt$00", "scrypt$zz$zz", "plain"])
def test_a_hash_that_is_none_matches_nothing(kept):
    assert not codes.matches("", kept)


def test_wrong_codes_of_one_visitor_end_in_a_pause_which_others_do_not_have():
    clock = [0.0]
    attempts = Attempts(now=lambda: clock[0])
    for _ in range(codes.TRIES):
        attempts.check("ada")
        attempts.failed("ada")
    with pytest.raises(NotAllowed, match="Too many wrong codes"):
        attempts.check("ada")
    attempts.check("bob")
    clock[0] += codes.WINDOW_S + 1
    attempts.check("ada")


def test_a_visitor_with_a_new_name_each_time_ends_in_a_pause_too():
    attempts = Attempts(now=lambda: 0.0)
    for number in range(codes.ALL_TRIES):
        attempts.failed(str(number))
    with pytest.raises(NotAllowed):
        attempts.check("somebody new")
