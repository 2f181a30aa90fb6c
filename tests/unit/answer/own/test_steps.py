"""What the time of a step is made of, and what is said of it: from numbers alone."""

import pytest

from core.answer.custom_findings import NOTHING_ODD, CustomSteps, custom_cause, list_findings, weigh_long_steps
from tests.own_trainings import own_run

FLOOR = (2e-6, 3e-6, 2e-7)


def steps(**known):
    """Ten milliseconds of arithmetic in a hundred operations, on a CPU unless said."""
    plain = {
        "on_host": True,
        "step_s": 0.01,
        "operations": (100,) * 4,
        "waits": (0,) * 4,
        "inside_s": (0.0101,) * 4,
        "float64_s": (0.0,) * 4,
        "between_s": (0.0,) * 4,
        "floor_s": FLOOR,
    }
    return CustomSteps(**{**plain, **known})


def first(known):
    return (list_findings(known)[0].kind, list_findings(known)[0].share)


def test_a_step_that_only_computes_has_nothing_that_stands_out():
    assert list_findings(steps()) == []
    assert steps().costs["arithmetic"] == pytest.approx(0.98, abs=0.01)


@pytest.mark.parametrize(
    ("known", "kind", "share"),
    [
        ({"loader_s": 0.004}, "loader", 0.4),
        ({"transfer_s": 0.004}, "transfer", 0.4),
        ({"between_s": (0.006,) * 4, "inside_s": (0.004,) * 4}, "host", 0.6),
        ({"float64_s": (0.0101,) * 4, "float64": (90,) * 4}, "float64", 0.98),
        ({"step_s": 0.001, "waits": (3_000,) * 4, "operations": (3_050,) * 4, "inside_s": (0.009,) * 4}, "waits", 0.6),
        ({"step_s": 2.5e-4, "inside_s": (3.2e-4,) * 4}, "small", 0.92),
    ],
    ids=["loader", "transfer", "host", "float64", "reads", "small"],
)
def test_on_a_cpu_a_thing_costs_its_own_time(known, kind, share):
    assert first(steps(**known)) == (kind, pytest.approx(share, abs=0.02))
    assert sum(steps(**known).costs.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("known", "kind", "share"),
    [
        ({"step_s": 0.01, "busy_s": 0.004, "between_s": (0.009,) * 4}, "host", 0.6),
        ({"step_s": 0.01, "busy_s": 0.004, "loader_s": 0.002, "between_s": (0.007,) * 4}, "host", 0.6),
        ({"step_s": 0.01, "busy_s": 0.006, "operations": (200,) * 4, "waits": (1,) * 4}, "waits", 0.4),
        ({"step_s": 0.01, "busy_s": 0.001, "operations": (4_500,) * 4}, "small", 0.9),
        ({"step_s": 0.01, "busy_s": 0.01, "float64_s": (0.0101,) * 4}, "float64", 0.98),
    ],
    ids=["host", "host-and-loader", "waits", "launches", "float64"],
)
def test_on_an_accelerator_the_host_costs_only_what_the_device_idles_meanwhile(known, kind, share):
    assert first(steps(on_host=False, **known)) == (kind, pytest.approx(share, abs=0.02))


def test_what_is_hidden_behind_a_busy_device_costs_nothing():
    busy = steps(on_host=False, busy_s=0.01, loader_s=0.008, between_s=(0.001,) * 4)
    assert list_findings(busy) == []
    assert busy.idle == 0.0


def test_without_a_busy_time_the_drained_operations_stand_for_it():
    assert steps(on_host=False, step_s=0.02).idle == pytest.approx(0.51, abs=0.01)
    assert steps(on_host=False, step_s=0.02, inside_s=()).idle is None


def test_a_row_of_before_says_for_how_long_its_device_idles_and_what_was_timed_apart():
    old = steps(on_host=False, busy_s=0.004, loader_s=0.003, inside_s=(), float64_s=(), between_s=(), floor_s=())
    assert [(found.kind, found.share) for found in list_findings(old)] == [
        ("idle", pytest.approx(0.6)),
        ("loader", pytest.approx(0.3)),
    ]


def test_nothing_is_said_of_what_was_not_measured():
    assert list_findings(CustomSteps(on_host=True)) == []
    assert CustomSteps(on_host=True).costs == {}
    assert CustomSteps(on_host=True, step_s=0.0).costs == {}


@pytest.mark.parametrize(
    ("known", "kind", "said"),
    [
        ({"learns": False}, "learns", "trains nothing"),
        (
            {"waits": (1,) * 4, "waits_at": "mine.py:7"},
            "waits",
            "each step reads values or sizes 1 time, most often at mine.py:7; with tensors on a GPU, each read makes",
        ),
        (
            {"syncs": (2,) * 4, "syncs_at": "mine.py:7"},
            "syncs",
            "makes the host wait 2 times in each step, most often at",
        ),
        ({"copies": (2,) * 4}, "copies", "copies 2 tensors"),
        ({"kept": (5, 6, 7, 8)}, "grows", "so memory grows"),
        ({"operations": (100, 101, 102, 103)}, "grows", "so memory grows"),
        ({"threads_set": True}, "threads", "number of threads"),
        ({"printed": 9, "steps": 9}, "prints", "prints 9 lines"),
        ({"float64": (90,) * 4}, "float64", "90 % of the operations are in float64"),
    ],
)
def test_what_has_no_share_is_said_all_the_same(known, kind, said):
    (found,) = list_findings(steps(**known))
    assert (found.kind, found.share) == (kind, None)
    assert said in found.sentence


def test_another_device_than_asked_for_comes_before_every_cost():
    found = list_findings(steps(on_host=False, busy_s=0.001, elsewhere=(60,) * 4, between_s=(0.009,) * 4))
    assert [each.kind for each in found][:2] == ["elsewhere", "host"]


def test_a_cost_is_said_once():
    found = list_findings(steps(float64_s=(0.0101,) * 4, float64=(90,) * 4))
    assert [each.kind for each in found] == ["float64"]


def test_a_stretch_that_one_step_alone_has_is_none_of_each_step():
    assert list_findings(steps(between_s=(0.009, 0.0, 0.009, 0.009))) == []


def test_a_step_that_a_busy_machine_makes_longer_is_not_said_to_be_made_of_calls():
    assert list_findings(steps(step_s=0.1)) == []


TENTH_S = (0.01,) * 9 + (0.5,)


def test_long_steps_are_weighed_by_their_share_of_the_time():
    often, cost, times = weigh_long_steps(TENTH_S)
    assert (often, times) == (0.1, pytest.approx(50))
    assert cost == pytest.approx(0.49 / 0.59)
    assert weigh_long_steps((0.01,) * 10) == weigh_long_steps(()) == (0.0, 0.0, 0.0)


def test_long_steps_are_named_first_with_their_line_and_what_is_left_is_of_usual_steps():
    known = steps(step_s=0.059, uneven=weigh_long_steps(TENTH_S), long_at="mine.py:9 in evaluate, an evaluation")
    (found,) = list_findings(known)
    assert (found.kind, found.share) == ("uneven", pytest.approx(0.83, abs=0.01))
    assert found.sentence == (
        "10 % of its steps take 50.0 times as long as a usual one and account for 83 % of the time, most of it at "
        "mine.py:9 in evaluate, an evaluation. Leave evaluation out of build and step, for example by an interval "
        "that is never reached."
    )
    assert sum(known.costs.values()) == pytest.approx(1.0, abs=0.02)


def test_a_first_step_that_takes_far_longer_than_the_others_is_named_with_its_line():
    known = steps(first_s=60.0, first_at="mine.py:9 in estimate_loss, an evaluation")
    (found,) = list_findings(known)
    assert found.sentence.startswith(
        "the first step took 1 min, 6,000 times as long as a step, most of it at mine.py:9 in estimate_loss"
    )
    assert list_findings(steps(first_s=0.5)) == []


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({}, "The cause is unknown: the operations of steps on 2 CPU threads were not examined."),
        ({"own_operations": (100,) * 4}, NOTHING_ODD),
        (
            {"own_operations": (100,) * 4, "own_single_s": (1.0,) * 98 + (4.0,) * 2},
            NOTHING_ODD,
        ),
    ],
    ids=["unexamined", "examined", "hardly-uneven"],
)
def test_the_work_itself_decides_only_where_its_steps_were_examined(known, sentence):
    baseline, challenger = own_run(**known)
    assert custom_cause(baseline, challenger) == sentence


def test_steps_that_hold_too_little_of_the_time_decide_nothing():
    assert steps(uneven=(0.1, 0.25, 4.0)).examined == pytest.approx(0.75)
    assert steps(operations=()).examined == 0.0


def test_long_steps_without_a_line_come_after_what_is_known_of_usual_steps():
    uneven = {"step_s": 0.059, "uneven": weigh_long_steps(TENTH_S), "loader_s": 0.0065}
    assert [found.kind for found in list_findings(steps(**uneven))] == ["loader", "uneven"]
    placed = list_findings(steps(**uneven, long_at="mine.py:9 in evaluate"))
    watched = list_findings(steps(**uneven, looked=100))
    assert [found.kind for found in placed] == [found.kind for found in watched] == ["uneven", "loader"]
