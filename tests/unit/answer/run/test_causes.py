"""The parts of a step and the cause in words, on rows whose numbers are chosen."""

import dataclasses

import pytest

from core.answer import causes
from core.results.schema import Trial
from tests.rows import trial


def taken_apart(contender="cpu", *, step_s=1e-3, busy_s=None, **changes) -> Trial:
    """A row whose parts are given in milliseconds by name; the others took no time."""
    given = {part: (changes.pop(part) * 1e-3,) * 3 if part in changes else () for part in causes.PART_TITLES}
    columns = {f"breakdown_{part}_s": times for part, times in given.items()}
    busy = () if busy_s is None else (busy_s,) * 3
    return trial(contender=contender, step_s=step_s, **{"jitter": 0, **columns, "busy_step_s": busy, **changes})


def test_parts_are_medians_with_their_sum_and_its_excess_over_the_step():
    row = trial(
        step_s=1e-3,
        jitter=0,
        breakdown_loader_s=(0.1e-3, 0.2e-3, 9.0),
        breakdown_transfer_s=(),
        breakdown_forward_s=(0.3e-3,),
        breakdown_backward_s=(0.5e-3,),
        breakdown_optimizer_s=(0.25e-3,),
    )
    found = causes.step_parts(row)
    assert found.loader_s == 0.2e-3
    assert found.transfer_s == 0
    assert found.sum_s == pytest.approx(1.25e-3)
    assert found.step_s == pytest.approx(1e-3)
    assert found.excess == pytest.approx(0.25)
    assert found.launch_share is None
    assert found.share("backward") == pytest.approx(0.4)
    assert found.largest == "backward"


@pytest.mark.parametrize(("busy_s", "share"), [(0.25e-3, 0.75), (1.2e-3, 0.0), (-0.1e-3, 1.0)])
def test_the_launch_share_is_what_a_busy_device_leaves_of_the_step(busy_s, share):
    row = taken_apart("cuda:0", forward=1, busy_s=busy_s)
    assert causes.step_parts(row).launch_share == pytest.approx(share)


def test_without_a_breakdown_or_a_timed_block_there_are_no_parts():
    assert causes.step_parts(taken_apart()) is None
    assert causes.step_parts(taken_apart(forward=1, pairs=0)) is None


def test_a_missing_breakdown_is_said_plainly_and_by_name():
    known, unknown = taken_apart(forward=1), taken_apart("cuda:0")
    assert causes.difference_cause(known, unknown) == "The cause is unknown: no breakdown was measured on the GPU."
    assert "on the CPU and the GPU." in causes.difference_cause(taken_apart(), unknown)


def test_the_excess_is_told_with_both_times():
    sentence = causes.step_parts(taken_apart(forward=1.5)).excess_sentence
    assert sentence == "On the CPU the parts timed separately add up to 1.50 ms, the undisturbed step takes 1.00 ms."


def test_a_loader_that_rules_both_bounds_what_any_device_can_gain():
    cpu = taken_apart(loader=0.91, forward=0.09, data_path="tutorial")
    gpu = taken_apart("cuda:0", step_s=0.95e-3, loader=0.91, forward=0.09, data_path="tutorial")
    assert causes.difference_cause(cpu, gpu) == (
        "The loader takes 91 % of the step on both devices, so no device can gain more than 1.10× over the CPU."
    )


def test_different_shares_of_the_loader_are_both_named():
    cpu = taken_apart(loader=0.6, forward=0.4, data_path="loader")
    gpu = taken_apart("cuda:0", loader=0.8, forward=0.2, data_path="loader")
    assert "60 % of the step on the CPU and 80 % on the GPU, so" in causes.difference_cause(cpu, gpu)


@pytest.mark.parametrize(
    "changes",
    [
        {"data_path": "resident"},
        {"data_path": "loader", "loader_workers": 2},
        {"data_path": "loader", "step_s": 0.5e-3},
    ],
    ids=["made by the device", "made beside the device", "contradicted by the times"],
)
def test_no_bound_is_claimed_where_the_loader_does_not_bound(changes):
    step_s = changes.pop("step_s", 1e-3)
    cpu = taken_apart(loader=0.9, forward=0.1, **changes)
    gpu = taken_apart("cuda:0", step_s=step_s, loader=0.9, forward=0.1, **changes)
    assert causes.difference_cause(cpu, gpu) == "The loader takes 90 % of the step on both devices."


def cause_of(**changes) -> str:
    return causes.difference_cause(taken_apart(forward=1), taken_apart("cuda:0", **changes))


def test_launch_overhead_is_the_cause_when_the_device_is_mostly_idle():
    assert cause_of(forward=1, busy_s=0.22e-3) == (
        "On the GPU 78 % of a step is launch overhead: it waits for the host to launch its kernels."
    )


def test_the_share_of_launches_comes_with_the_range_of_its_readings_and_is_named_only_if_all_agree():
    """As on a laptop whose clock moves while the device is kept busy."""

    def cause(*busy_s):
        gpu = dataclasses.replace(taken_apart("cuda:0", forward=1), busy_step_s=busy_s)
        return causes.difference_cause(taken_apart(forward=1), gpu)

    assert cause(0.17e-3, 0.2e-3, 0.22e-3, 0.25e-3, 0.29e-3) == (
        "On the GPU 78 % (71 % to 83 %) of a step is launch overhead: it waits for the host to launch its kernels."
    )
    assert cause(0.3e-3, 0.4e-3, 0.45e-3, 0.5e-3, 0.52e-3) == (
        "For 45 % (30 % to 52 %) of a step the GPU is busy, and for the rest it waits for the host."
    )
    assert "busy: its own speed" not in cause(0.7e-3, 0.8e-3, 0.85e-3, 0.9e-3, 0.95e-3)
    assert "busy: its own speed" in cause(0.81e-3, 0.8e-3, 0.85e-3, 0.9e-3, 0.95e-3)


def test_an_idle_device_that_also_waits_for_data_is_not_blamed_on_launches_alone():
    sentence = cause_of(forward=0.7, loader=0.2, transfer=0.1, busy_s=0.22e-3)
    assert sentence.startswith("For 78 % of a step the GPU is idle: it waits for its data (30 % of the parts")


def test_a_busy_device_decides_by_its_own_speed():
    assert "For 93 % of a step the GPU is busy: its own speed limits the step" in cause_of(forward=1, busy_s=0.93e-3)


def test_a_device_between_busy_and_idle_is_neither():
    assert cause_of(forward=1, busy_s=0.6e-3) == (
        "For 60 % of a step the GPU is busy, and for the rest it waits for the host."
    )


def test_a_transfer_that_outweighs_the_training_is_the_cause():
    assert "copying the batch to the device takes 62 %" in cause_of(forward=0.38, transfer=0.62, busy_s=0.3e-3)


def test_a_loader_that_rules_the_accelerator_alone_is_the_cause_there():
    assert "On the GPU making the batch takes 70 % of the step" in cause_of(forward=0.3, loader=0.7)


def test_without_a_busy_time_the_largest_part_is_named():
    assert (
        cause_of(forward=0.4, backward=0.6) == "On the GPU the largest part of the step is the backward pass with 60 %."
    )


def test_the_accelerator_explains_even_if_it_is_the_baseline():
    sentence = causes.difference_cause(taken_apart("cuda:0", forward=1, busy_s=0.1e-3), taken_apart(forward=1))
    assert sentence.startswith("On the GPU 90 % of a step is launch overhead")


@pytest.mark.parametrize(
    ("one_s", "four_s", "words"),
    [
        (
            2e-3,
            1e-3,
            "A step is 2.00× as fast with 4 threads as with 1 thread: it is large enough to benefit from more threads.",
        ),
        (1e-3, 1e-3, "A step is at most 1.00× as fast with 4 threads as with 1 thread: it is too small"),
        (1e-3, 4e-3, "A step is 0.250× as fast with 4 threads as with 1 thread: it is too small"),
    ],
)
def test_two_settings_of_one_cpu_differ_by_how_their_threads_share_the_step(one_s, four_s, words):
    one, four = (taken_apart(f"cpu@{n}", step_s=s, forward=1) for n, s in ((1, one_s), (4, four_s)))
    expected = words if words.endswith(".") else f"{words} to benefit from more threads."
    assert causes.difference_cause(one, four) == expected
    assert causes.difference_cause(four, one) == expected


def test_threads_whose_blocks_scatter_too_much_are_not_judged():
    one, two = (taken_apart(f"cpu@{n}", step_s=s, forward=1, jitter=0.2) for n, s in ((1, 1.1e-3), (2, 1e-3)))
    assert (
        causes.difference_cause(one, two)
        == "These blocks do not show whether splitting the step among 2 threads pays off."
    )


def test_two_settings_that_used_as_many_threads_are_the_same_work():
    one, best = taken_apart("cpu@1", forward=1), taken_apart("cpu", forward=1, threads=1)
    assert (
        causes.difference_cause(one, best) == "Both trained with 1 thread, so they did the same work in the same way."
    )


def test_float64_is_named_from_steps_that_took_turns_with_float32():
    turns = {"turns_step_s": (1.0,) * 3, "float32_step_s": (0.5, 0.55, 0.45)}
    host, device = taken_apart(forward=1), taken_apart("cuda:0", forward=1, busy_s=0.9e-3, **turns)
    assert causes.difference_cause(host, device).endswith(
        "On the GPU float64 takes 50 % of a step, which float32 would avoid; most GPUs run it at a fraction "
        "of their float32 speed."
    )
    for times in ((0.95,) * 3, (0.5, 1.1, 0.5), ()):  # not worth a word, not in every turn, not measured
        quick = taken_apart("cuda:0", forward=1, busy_s=0.9e-3, turns_step_s=(1.0,) * 3, float32_step_s=times)
        assert "float64" not in causes.difference_cause(host, quick)
