"""The recipes for the clock on a device whose work is delayed, and on a real training."""

import statistics
from dataclasses import dataclass, field

import pytest

from core.measure import datasets, devices
from core.measure.demonstrations import clock
from core.measure.demonstrations.clock import REPEATS, Lesson, Stage, Stopped, Stopwatch
from core.measure.timer import MIN_BLOCK_S
from core.measure.trial import Hooks
from core.question.demonstrations import RECIPES, Demonstration, Recipe
from core.question.experiment import Contender, Point
from tests.exhibited import DIGITS
from tests.fakes import FakeClock, FakeDevice

LAUNCH_S, BUSY_S = 1e-5, 1e-2
"""Host time of queueing a step, and what the device takes for it."""

POINT = Point(samples=1_000, batch_size=100, epochs=4)
EPOCH_S = POINT.steps_per_epoch * BUSY_S


@dataclass
class FakePupil:
    """Steps whose work is queued; reading anything waits for all of it, as .item() does."""

    recipe: Recipe
    device: FakeDevice
    loader_s: float = 0.0
    first_s: float = 0.0
    prefetched: int = 0
    steps: int = 0

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self.device.clock.pass_s(self.loader_s if "loader_inside" in self.recipe.switched else 0.0)
            self.device.launch(BUSY_S + (0.0 if self.steps else self.first_s))
            self.steps += 1
            if {"item_every_step", "accuracy_every_step"}.intersection(self.recipe.switched):
                self.device.synchronize()

    def end_epoch(self) -> None:
        if "errors_printed" in self.recipe.switched:
            self.device.synchronize()
        if "tests_inside" in self.recipe.switched:
            self.advance(4)

    def settle(self) -> None:
        self.device.synchronize()


@dataclass
class Room:
    """A lesson on a delayed device."""

    device: FakeDevice = field(default_factory=lambda: FakeDevice(clock=FakeClock(), launch_s=LAUNCH_S))
    loader_s: float = 0.0
    first_s: float = 0.0

    def __post_init__(self) -> None:
        now = self.device.clock
        self.lesson = Lesson(
            point=POINT,
            stopwatch=Stopwatch(device=self.device, clock=now, wall=now),
            fresh=lambda recipe: FakePupil(recipe, self.device, self.loader_s, self.first_s),
        )

    def blocks(self, *names: str, late=lambda: False) -> dict[str, list[float]]:
        list(self.lesson.time_blocks([RECIPES[name] for name in names], late=late, allowance_s=60))
        return self.lesson.readings

    def whole(self, name: str, share_s: float = 60, remaining_s: float = 60) -> list[float]:
        list(self.lesson.time_epochs(RECIPES[name], share_s, remaining_s, tested=0.4))
        return self.lesson.readings.get(name, [])


def test_without_a_drain_the_clock_falls_short_by_the_queued_work_and_ours_does_not():
    room = Room()
    readings = room.blocks("ours", "no_drain")
    assert readings["ours"] == pytest.approx([EPOCH_S] * REPEATS, rel=0.01)
    assert readings["no_drain"] == pytest.approx([POINT.steps_per_epoch * LAUNCH_S] * REPEATS, rel=0.01)


def test_on_a_device_without_a_queue_the_drain_makes_no_difference():
    room = Room(device=FakeDevice(clock=FakeClock(), launch_s=BUSY_S))
    room.device.launch = lambda seconds: room.device.clock.pass_s(seconds)
    readings = room.blocks("ours", "no_drain")
    assert readings["no_drain"] == pytest.approx(readings["ours"])


def test_work_from_before_is_charged_to_a_clock_that_is_started_undrained():
    room = Room()
    recipe = Recipe(name="late", title="", explains="", switched=("no_drain_before",))
    list(room.lesson.time_blocks([RECIPES["ours"], recipe], late=lambda: False, allowance_s=60))
    lead_in = 2 * BUSY_S
    per_step = room.lesson.readings["late"][0] / POINT.steps_per_epoch
    assert per_step == pytest.approx(BUSY_S + lead_in / room.lesson.steps["late"], rel=0.01)


def test_without_warm_up_the_first_step_of_each_block_counts():
    readings = Room(first_s=0.5).blocks("ours", "no_warm_up")
    assert readings["ours"] == pytest.approx([EPOCH_S] * REPEATS, rel=0.01)
    steps = round(0.5 * POINT.steps_per_epoch / (readings["no_warm_up"][0] - EPOCH_S))
    assert steps * BUSY_S >= MIN_BLOCK_S
    assert len(readings["no_warm_up"]) == REPEATS


def test_a_loader_inside_hides_the_device():
    readings = Room(loader_s=3 * BUSY_S).blocks("ours", "loader_inside")
    assert statistics.median(readings["loader_inside"]) > 2.9 * statistics.median(readings["ours"])


def test_one_repeat_is_one_reading_of_our_clock():
    readings = Room().blocks("ours", "one_repeat")
    assert readings["one_repeat"] == pytest.approx([EPOCH_S], rel=0.01)


def test_printing_waits_for_the_device_so_that_the_disc_tutorial_loses_little():
    room = Room()
    assert room.whole("disc") == pytest.approx([EPOCH_S], rel=0.01)
    assert room.lesson.steps["disc"] == POINT.total_steps


def test_the_fashion_tutorials_one_epoch_is_over_before_the_work_is():
    room = Room()
    assert room.whole("fashion-cnn") == pytest.approx([POINT.steps_per_epoch * LAUNCH_S], rel=0.01)
    assert room.lesson.steps["fashion-cnn"] == POINT.steps_per_epoch


def test_the_signal_tutorial_charges_the_first_step_to_the_training():
    assert Room(first_s=0.4).whole("signal") == pytest.approx([EPOCH_S + 0.4 / POINT.epochs], rel=0.01)


def test_the_mnist_tutorial_reads_each_epoch_with_its_tests():
    room = Room()
    assert room.whole("mnist-linear") == pytest.approx([EPOCH_S + 4 * BUSY_S] * POINT.epochs, rel=0.01)


def test_a_training_is_cut_to_the_epochs_that_its_share_allows_but_to_one_at_least():
    room = Room()
    room.whole("disc", share_s=2.5 * EPOCH_S)
    assert room.lesson.steps["disc"] == 2 * POINT.steps_per_epoch
    room.whole("signal", share_s=0.0)
    assert room.lesson.steps["signal"] == POINT.steps_per_epoch


def test_a_tutorial_whose_epoch_takes_longer_than_is_left_is_left_out_and_a_note_says_so():
    room = Room()
    assert room.whole("disc", remaining_s=0.05) == []
    assert room.lesson.notes == [
        "As the disc tutorial was left out: an epoch takes about 100 ms, and 50.0 ms were left."
    ]
    assert room.lesson.variants([RECIPES["disc"]], "cpu") == ()


def test_a_spent_budget_leaves_recipes_out_and_ends_after_a_round_and_notes_say_so():
    room = Room()
    readings = room.blocks("ours", "no_drain", late=lambda: True)
    assert {name: len(values) for name, values in readings.items()} == {"ours": 1}
    assert room.lesson.notes == [
        "No synchronization was left out: the budget was spent before it could start.",
        f"Blocks were timed 1 instead of {REPEATS} times: the budget was spent.",
    ]


def test_a_clock_that_is_set_back_loses_its_reading_and_a_note_says_so():
    room = Room()
    room.lesson.stopwatch = Stopwatch(device=room.device, clock=room.device.clock, wall=lambda: -room.device.clock())
    assert room.whole("fashion-cnn") == []
    assert room.lesson.notes == [
        "As the Fashion-MNIST tutorial lost a reading: its clock was changed meanwhile, or is too coarse."
    ]


def test_blocks_take_turns():
    room, order = Room(), []
    read = room.lesson._read
    room.lesson._read = lambda recipe, *rest, **more: (order.append(recipe.name), read(recipe, *rest, **more))
    room.blocks("ours", "no_drain", "item_every_step")
    rounds = [order[start : start + 3] for start in range(0, len(order), 3)]
    assert all(len(set(turn)) == 3 for turn in rounds)
    assert len({tuple(turn) for turn in rounds}) > 1


@pytest.fixture
def stage():
    def make(demonstration: Demonstration, **hooks) -> Stage:
        return Stage(demonstration=demonstration, hooks=Hooks(**hooks))

    return make


@pytest.mark.slow
def test_every_recipe_times_a_real_training(stage):
    asked = Demonstration(kind="clock", point=DIGITS, contenders=(Contender(threads=1),), budget_s=60)
    phases = []
    shown = clock.run_clock_lesson(
        asked, stage(asked, progress=lambda now: phases.append((now.phase, now.contenders[0])))
    )
    assert [variant.name for variant in shown.variants] == list(RECIPES)
    assert shown.notes == ()
    by_name = {variant.name: variant for variant in shown.variants}
    readings = {name: len(variant.epoch_s) for name, variant in by_name.items()}
    assert readings["ours"] == readings["no_warm_up"] == REPEATS
    assert readings["one_repeat"] == readings["disc"] == readings["fashion-cnn"] == 1
    assert readings["mnist-linear"] == DIGITS.epochs
    assert by_name["signal"].steps == DIGITS.total_steps
    assert by_name["fashion-cnn"].steps == DIGITS.steps_per_epoch
    done = [contender.steps for phase, contender in phases if phase.startswith("timing")]
    assert done == sorted(done)
    assert phases[-1][1].threads == 1


@pytest.mark.slow
def test_contenders_are_shown_one_after_the_other_and_the_best_threads_are_found(stage):
    asked = Demonstration(
        kind="clock", point=DIGITS, contenders=(Contender(), Contender(threads=1)), recipes=("one_repeat",)
    )
    done = []
    given = stage(asked, progress=lambda now: done.append((now.contenders[0].steps, now.contenders[0].total_steps)))
    shown = clock.run_clock_lesson(asked, given)
    assert done[1:] == sorted(done[1:]), "it goes on where the contender before ended"
    assert done[-1][0] == done[-1][1]
    assert [(entry.contender, entry.name) for entry in shown.variants] == [
        ("cpu", "ours"),
        ("cpu", "one_repeat"),
        ("cpu@1", "ours"),
        ("cpu@1", "one_repeat"),
    ]
    assert given.threads[Contender()] >= 1


@pytest.mark.slow
def test_a_stop_ends_a_lesson_between_timings(stage):
    asked, seen = Demonstration(kind="clock", point=DIGITS, contenders=(Contender(threads=1),)), []
    given = stage(
        asked, progress=lambda now: seen.append(now.phase), should_stop=lambda: "timing blocks on 1 CPU thread" in seen
    )
    with pytest.raises(Stopped):
        clock.run_clock_lesson(asked, given)
    assert seen[-1] == "timing blocks on 1 CPU thread"


def test_our_clock_is_the_timer_that_measures():
    device = devices.open_device("cpu")
    stopwatch, collecting = Stopwatch(device=device), []
    import gc

    stopwatch.seconds(lambda: collecting.append(gc.isenabled()))
    assert collecting == [False]


def test_data_on_the_device_are_what_ours_times_whatever_the_training_uses():
    data = datasets.load_dataset("digits", samples=DIGITS.samples, seed=0)
    point = Point(**{**vars(DIGITS), "data_path": "tutorial", "loader_workers": 1})
    assert clock.point_for_recipe(RECIPES["ours"], point).data_path == "resident"
    assert clock.point_for_recipe(RECIPES["signal"], point).loader_workers == 1
    assert clock.point_for_recipe(RECIPES["signal"], DIGITS).loader_workers == 0
    assert clock.count_held_out(data) == len(data.validation) + len(data.test)
