"""Codes: readable, checked without being kept; what was typed differently is told so at once."""

import itertools
import random

import pytest

from core.classroom import students


def letters(code):
    return code.replace("-", "")


def test_codes_can_be_read_out_and_no_two_are_the_same():
    made = [students.join_code() for _ in range(200)]
    assert len(set(made)) == 200
    assert not set("".join(made)) & set("01OIL")
    assert all([len(part) for part in code.split("-")] == [3, 3, 3] for code in made)
    assert all(students.may_join(code) for code in made)


def test_every_wrong_letter_and_every_two_that_changed_places_are_noticed():
    code = letters(students.join_code())
    for place, letter in itertools.product(range(len(code)), students.LETTERS):
        changed = code[:place] + letter + code[place + 1 :]
        assert students.may_join(changed) == (changed == code)
    for one, other in itertools.combinations(range(len(code)), 2):
        swapped = list(code)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert students.may_join("".join(swapped)) == ("".join(swapped) == code)


@pytest.mark.slow
def test_of_codes_that_are_made_up_one_in_31_goes_together():
    draw = random.Random(1)
    guesses = 100_000
    passed = sum(students.may_join("".join(draw.choices(students.LETTERS, k=9))) for _ in range(guesses))
    assert 0.9 < passed / (guesses / 31) < 1.1


@pytest.mark.parametrize(
    "typed", ["KX4-M9P-QS7", "kx4m9pqs7", " kx4 - m9p - qs7 ", "KX4 M9P QS7", "ＫＸ４Ｍ９ＰＱＳ７"]
)
def test_a_code_is_the_same_however_it_is_typed(typed):
    assert students.may_join(typed)
    assert students.format_code(typed) == students.EXAMPLE


@pytest.mark.parametrize("typed", ["KX4M-9PQA", "kx4m9pqa", " kx4m - 9pqa ", "KX4M 9PQA"])
def test_a_code_of_an_earlier_version_stays_what_it_was(typed):
    assert students.may_join(typed)
    assert students.format_code(typed) == "KX4M-9PQA"


@pytest.mark.parametrize(
    "typed", ["", "KX4", "KX4-M9P-QS0", "KX4-M9P-QSO", "KX4-M9P-Q-I", "KX4-M9P-QS77", "\0", "x" * 10**6]
)
def test_what_has_other_letters_or_another_length_is_no_join_code(typed):
    assert not students.may_join(typed)


def test_of_a_secret_only_a_hash_is_kept_and_it_tells_right_from_wrong():
    secret = students.secret()
    assert [len(part) for part in secret.split("-")] == [4] * 5
    kept = students.hash_code(secret)
    assert secret not in kept
    assert students.hash_code(secret) != kept
    assert students.may_match(secret.lower())
    assert students.matches(secret.lower(), kept)
    assert not students.matches(students.secret(), kept)
    assert not students.matches("", kept)


@pytest.mark.parametrize("typed", ["", "wrong", "KX4-M9P-QS7", "KX4M-9PQA-KX4M-9PQA-KX4"])
def test_what_has_not_the_letters_of_a_secret_needs_no_check(typed):
    assert not students.may_match(typed)


@pytest.mark.parametrize("kept", ["", "scrypt$00", "scrypt$zz$zz", "plain"])
def test_a_hash_that_is_none_matches_nothing(kept):
    assert not students.matches("", kept)
