"""Trust marks: one row, several together, and a whole table at once say the same."""

import dataclasses

import numpy as np
import pytest

from core.answer import interference, speedup
from core.answer.gallery import trust
from core.answer.statistics import MIN_PAIRS
from tests import rows

GOOD = rows.trial()
GPU = rows.trial(contender="cuda:0")

LACKING = {
    "drained": ({"drained": False}, "not synchronized"),
    "warmed": ({"warmup_s": (), "warmup_steps": ()}, "No warm-up block"),
    "threads": ({"threads_tried": (), "threads_tried_step_s": ()}, "It ran on 4 CPU threads"),
    "load": ({"block_load": (1.0,) * 19 + (9.4,)}, "The load reached 9.4 on a machine of 8 processor threads"),
    "steal": ({"block_steal": (0.0,) * 19 + (0.25,)}, "took 25 % of the processor time"),
    "no load": ({"block_load": (), "block_steal": ()}, "How busy the machine was is not recorded"),
    "versions": ({"torch_version": "", "system": ""}, "The version of torch and the operating system is not"),
    "changed code": ({"app_commit": "0123456789ab+"}, "uncommitted changes (0123456789ab+)"),
    "no commit": ({"app_commit": ""}, "The commit of the measuring code is not recorded"),
}


def test_a_row_with_everything_is_fully_trusted():
    for row in (GOOD, GPU):
        found = trust.trust_mark([row])
        assert (found.level, found.met, found.missing) == ("full", len(trust.CHECKS), ())
        assert found.label == "full, 9 of 9"


@pytest.mark.parametrize("name", LACKING)
def test_what_is_missing_is_named_with_its_figure(name):
    changes, sentence = LACKING[name]
    found = trust.trust_mark([dataclasses.replace(GOOD, **changes)])
    assert found.met == found.of - 1
    assert sentence in found.missing[0]


@pytest.mark.parametrize("name", ["drained", "warmed"])
def test_without_what_the_times_rest_on_a_mark_is_weak_by_itself(name):
    assert trust.trust_mark([dataclasses.replace(GOOD, **LACKING[name][0])]).level == "weak"


def test_a_mark_is_partly_up_to_two_missing_checks_and_weak_beyond():
    changes = {"app_commit": ""}
    assert trust.trust_mark([dataclasses.replace(GOOD, **changes)]).level == "partly"
    changes |= {"torch_version": ""}
    assert trust.trust_mark([dataclasses.replace(GOOD, **changes)]).level == "partly"
    changes |= {"threads_tried": ()}
    assert trust.trust_mark([dataclasses.replace(GOOD, **changes)]).level == "weak"


def test_pairs_count_from_the_number_that_gives_an_interval():
    enough, few = rows.trial(pairs=MIN_PAIRS), rows.trial(pairs=MIN_PAIRS - 1)
    assert trust.trust_mark([enough]).level == "full"
    assert trust.trust_mark([few]).missing == ("5 blocks were timed; from 6 on, a row has a 95 % interval of its own.",)


def test_noise_is_held_against_the_same_limits_as_a_verdict():
    noisy = rows.trial(jitter=0.2)
    assert speedup.step_time(noisy).noise > trust.MAX_NOISE
    assert "of their median; 10 % is accepted" in trust.trust_mark([noisy]).missing[0]
    disturbed = dataclasses.replace(
        GOOD, block_end_ns=tuple(end + (10**9 if n % 5 == 0 else 0) for n, end in enumerate(GOOD.block_end_ns))
    )
    assert interference.row_interference([disturbed]).any
    assert "One block in ten took at least" in trust.trust_mark([disturbed]).missing[0]


def test_a_row_without_times_says_that_its_noise_is_not_known():
    missing = trust.trust_mark([rows.trial(pairs=0, block_load=(), block_steal=())]).missing
    assert "Too few blocks were timed to know the noise." in missing


@pytest.mark.parametrize(
    "changes",
    [{"contender": "cpu@2", "threads_tried": ()}, {"cores_usable": 1, "threads_tried": ()}],
    ids=["asked for", "no choice"],
)
def test_threads_that_are_fixed_on_purpose_or_leave_no_choice_need_no_trial(changes):
    assert trust.trust_mark([dataclasses.replace(GOOD, **changes)]).level == "full"


def test_a_part_of_a_gpu_is_told_by_its_name():
    part = dataclasses.replace(GPU, device_name="NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    assert "is a part of a GPU" in trust.trust_mark([part]).missing[0]


def test_an_accelerator_without_a_known_driver_lacks_a_version():
    unknown = dataclasses.replace(GPU, device_driver="CUDA 13.0, driver unknown")
    assert trust.trust_mark([unknown]).missing == ("The version of the driver of the GPU is not recorded.",)


def test_rows_together_meet_a_check_only_if_all_do_and_the_worst_is_quoted():
    together = [GOOD, rows.trial(pairs=5), rows.trial(pairs=3), GPU]
    found = trust.trust_mark(together)
    assert found.missing == (
        "In 2 of 4 rows; at worst: 3 blocks were timed; from 6 on, a row has a 95 % interval of its own.",
    )
    assert trust.trust_mark([rows.trial(pairs=3)] * 2).missing[0].startswith("In every row: 3 blocks")


def test_a_table_at_once_says_what_each_row_says():
    mixed = [GOOD, GPU, *(dataclasses.replace(GOOD, **changes) for changes, _ in LACKING.values())]
    facts = [trust.check_facts(row) for row in mixed]
    columns = {name: np.array([each[name] for each in facts]) for name in facts[0]}
    met = trust.check_matrix(columns)
    assert trust.mark_levels(met).tolist() == [trust.trust_mark([row]).level for row in mixed]
    assert trust.mark_labels(met) == [trust.trust_mark([row]).label for row in mixed]
