"""How often something may be done: by one browser, by one address, by all; and who is not held up by whom."""

import pytest

from core.classroom import students
from core.classroom.students import CODE_RATES, JOIN_RATES, Limits, TooOften, VisitorSource
from core.errors import NotAllowed, StoreError

SCHOOL, HOME = "192.0.2.1", "198.51.100.7"


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def wrong(tried: Limits, source: VisitorSource) -> None:
    with pytest.raises(NotAllowed), tried.tried(source):
        raise NotAllowed("There is no class with this code.")


def right(tried: Limits, source: VisitorSource) -> bool:
    try:
        with tried.tried(source):
            return True
    except TooOften:
        return False


def test_ten_wrong_codes_of_one_browser_are_a_pause_of_seconds_which_nobody_else_has(clock):
    tried = Limits("Too many wrong codes were tried", CODE_RATES, now=clock)
    ada, bob = students.source("ada", SCHOOL), students.source("bob", SCHOOL)
    for _ in range(CODE_RATES["visitor"].at_once):
        wrong(tried, ada)
    with pytest.raises(TooOften, match="Too many wrong codes were tried by you in a short time; wait 6 s") as caught:
        tried.take(ada)
    assert caught.value.by == "visitor"
    assert right(tried, bob)
    clock.now_s += CODE_RATES["visitor"].every_s
    assert right(tried, ada)


def test_sessions_without_a_cookie_at_one_address_are_one_and_lock_out_nobody_else(clock):
    """980 wrong codes from 980 sessions without a cookie in 18 s, at which right codes were refused to everybody."""
    tried = Limits("Too many wrong codes were tried", CODE_RATES, now=clock)
    looked_up = 0
    for _ in range(980):
        looked_up += right_or_wrong(tried, students.source("", HOME))
        clock.now_s += 18 / 980
    assert looked_up <= CODE_RATES["visitor"].at_once + 18 / CODE_RATES["visitor"].every_s + 1
    assert right(tried, students.source("ada", SCHOOL))
    assert right(tried, students.source("bob", HOME))


def test_a_new_cookie_for_each_code_ends_at_the_address(clock):
    tried = Limits("Too many wrong codes were tried", CODE_RATES, now=clock)
    looked_up = 0
    for number in range(980):
        looked_up += right_or_wrong(tried, students.source(f"forged {number}", HOME))
        clock.now_s += 18 / 980
    assert looked_up <= CODE_RATES["address"].at_once + 18 / CODE_RATES["address"].every_s + 1
    assert right(tried, students.source("ada", SCHOOL))


def right_or_wrong(tried: Limits, source: VisitorSource) -> bool:
    """Try a wrong code; whether it was looked up."""
    try:
        with tried.tried(source):
            raise NotAllowed("wrong")
    except TooOften:
        return False
    except NotAllowed:
        return True


def test_beyond_the_ceiling_of_all_a_right_code_gets_in_within_seconds(clock):
    tried = Limits("Too many wrong codes were tried", CODE_RATES, now=clock)
    for number in range(CODE_RATES["all"].at_once):
        assert right_or_wrong(tried, students.source(f"bot {number}", f"203.0.113.{number % 250}"))
    ada = students.source("ada", SCHOOL)
    with pytest.raises(TooOften, match="by many visitors") as caught:
        tried.take(ada)
    assert caught.value.by == "all"
    assert caught.value.wait_s < 1
    looked_up, got_in = 0, False
    for tick in range(40):  # ten times a second forty bots each try, and the page of ada every two seconds
        clock.now_s += 0.1
        got_in = got_in or (tick % 20 == 0 and right(tried, ada))
        looked_up += sum(
            right_or_wrong(tried, students.source(f"{tick} {bot}", f"203.0.113.{bot}")) for bot in range(40)
        )
    assert got_in
    assert looked_up <= 4 / CODE_RATES["all"].every_s + 1


def test_guessing_takes_the_years_that_the_docstring_says():
    guesses_a_year = 365.25 * 24 * 3600 / CODE_RATES["all"].every_s
    found_once_in_years = len(students.LETTERS) ** (students.JOIN_LENGTH - 1) / 100 / guesses_a_year
    assert round(found_once_in_years) == 27
    assert "27 years" in (students.__doc__ or "")


def test_what_fails_for_another_reason_costs_nothing(clock):
    tried = Limits("x", CODE_RATES, now=clock)
    ada = students.source("ada", SCHOOL)
    for _ in range(2 * CODE_RATES["visitor"].at_once):
        with pytest.raises(StoreError), tried.tried(ada):
            raise StoreError("The file is damaged.")
    assert right(tried, ada)


def test_a_class_of_thirty_joins_at_once_from_one_address(clock):
    joined = Limits("Too many students joined this class", JOIN_RATES, now=clock)
    for number in range(30):
        joined.take(students.source(f"student {number}", SCHOOL), "a class")
    with pytest.raises(TooOften):
        any(joined.take(students.source(f"another {number}", SCHOOL), "a class") for number in range(1_000))


@pytest.mark.parametrize("cookie", ["", "forged {}"])
def test_two_hundred_bots_do_not_fill_a_class_in_minutes(clock, cookie):
    joined = Limits("Too many students joined this class", JOIN_RATES, now=clock)
    inside = 0
    while clock.now_s < 600:
        try:
            joined.take(students.source(cookie.format(clock.now_s), HOME), "a class")
            inside += 1
        except TooOften:
            clock.now_s += 1
    assert inside < 100
    joined.take(students.source("ada", SCHOOL), "a class")
    joined.take(students.source("", HOME), "another class")


def test_of_many_sources_only_those_are_remembered_that_say_something(clock, monkeypatch):
    monkeypatch.setattr(students, "MOST_BUCKETS", 100)
    joined = Limits("x", JOIN_RATES, now=clock)
    for number in range(1_000):
        joined.take(students.source(f"visitor {number}", f"192.0.2.{number}"))
        clock.now_s += 3_600
    assert len(joined._buckets) <= 102


def test_who_somebody_is_stands_nowhere():
    source = students.source("a cookie", SCHOOL)
    assert "cookie" not in repr(source)
    assert SCHOOL not in repr(source)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
        ("no address", "no address", True),
    ],
)
def test_of_ipv6_the_network_is_the_source(one, other, same):
    assert (students.source("", one) == students.source("", other)) == same
