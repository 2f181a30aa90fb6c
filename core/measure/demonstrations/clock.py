"""The clock lesson: one training timed correctly, with one shortcut of the clock at a time, and as in tutorials.

Recipes that time blocks take turns in random order, so a disturbance affects all of them; recipes that time whole
epochs or trainings follow. Each recipe trains a new network that does not use the clock. The module also has the stage
on which all demonstrations run, with progress, stop and budget.
"""

import io
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Subset

from ... import units
from ...progress import ContenderProgress, Progress
from ...question.demonstrations import RECIPES, Demonstration, Recipe
from ...question.experiment import BEST_THREADS, Contender, Point
from ...question.fields import LOADER_PATHS
from ...results import environment
from ...results.exhibits import Clock, Variant
from .. import datasets, devices, networks
from ..contender import DISCARDED_BLOCKS, WARM_UP_S, WARM_UP_STEPS, MeasuredContender
from ..datasets import Data, Split
from ..execution import Batch
from ..timer import Clock as Nanoseconds
from ..timer import Synchronizable, Timer, block_steps, lead_in_steps
from ..training import Training
from ..trial import Hooks


class Stopped(Exception):
    """Signals that a user wants the demonstration to end now; an unfinished lesson stores nothing."""


@dataclass(kw_only=True)
class Stage:
    """One demonstration in progress.

    Attributes:
        hooks: callbacks that receive progress and can request a stop; intermediate results are not saved.
        threads: contender → number of its CPU threads, after it was chosen.
    """

    demonstration: Demonstration
    hooks: Hooks = field(default_factory=Hooks)
    threads: dict[Contender, int] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)

    def tell(self, phase: str, *, done: int = 0, total: int = 0) -> None:
        """Report the phase and the finished parts of all contenders, then end if a stop was requested.

        Raises:
            Stopped: a stop was requested.
        """
        contenders = tuple(
            ContenderProgress(contender=str(each), steps=done, total_steps=total, threads=self.threads.get(each))
            for each in self.demonstration.contenders
        )
        budget_s = self.demonstration.budget_s
        self.hooks.progress(Progress(phase=phase, elapsed_s=self.elapsed_s, budget_s=budget_s, contenders=contenders))
        self.raise_if_stopped()

    def raise_if_stopped(self) -> None:
        """Raise an error if a stop was requested.

        Raises:
            Stopped: a stop was requested.
        """
        if self.hooks.should_stop():
            raise Stopped

    def use_threads(self, contender: Contender, threads: int = BEST_THREADS) -> None:
        """Let a contender use `threads` CPU threads from now on; by default those requested, or all usable ones."""
        self.threads[contender] = threads or contender.threads or environment.usable_cores()
        if torch.get_num_threads() != self.threads[contender]:
            torch.set_num_threads(self.threads[contender])

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._began

    @property
    def remaining_s(self) -> float:
        """Remaining seconds of the budget, at least 0."""
        return max(0.0, self.demonstration.budget_s - self.elapsed_s)


WATCHED = {"item_every_step", "accuracy_every_step", "errors_printed"}
"""Shortcuts that need access to the parts of a step."""


class RecipeTraining:
    """One fresh network in training.

    Attributes:
        prefetched: number of batches that may be ready before they are requested.
    """

    def __init__(self, recipe: Recipe, point: Point, data: Data, resident: Split, device: torch.device) -> None:
        """Build the network on the device of `resident`; the data path of the point does not matter."""
        self._point, self._data, self._device = point_for_recipe(recipe, point), data, device
        self._switched: Collection[str] = recipe.switched
        network = networks.build(point.network, point.seed).to(device)
        feed = datasets.make_feed(self._point, data, resident, device)
        self.prefetched = feed.prefetched
        self._training = Training(network, feed, learning_rate=point.learning_rate)
        self._errors, self._paper = torch.zeros((), dtype=torch.int64, device=device), io.StringIO()

    def advance(self, steps: int) -> None:
        """Train a number of steps, with the shortcuts of the recipe in each."""
        if not WATCHED.intersection(self._switched):
            self._training.advance(steps)
            return
        for _ in range(steps):
            self._step(self._training.place(self._training.draw()))

    def end_epoch(self) -> None:
        """Do the work of the recipe after an epoch: print, test, or nothing."""
        if "errors_printed" in self._switched:
            print(int(self._errors), file=self._paper)
            self._errors.zero_()
        if "tests_inside" in self._switched:
            self._test()

    def settle(self) -> None:
        """Read the losses between timings; this waits for the device."""
        self._training.read_losses()

    def _step(self, batch: Batch) -> None:
        """Train a step as in `core.measure.training`, but with access to its outputs."""
        samples, labels = batch
        self._training.optimizer.zero_grad()
        scores = self._training.network(samples)
        loss = functional.cross_entropy(scores, labels)
        loss.backward()
        self._training.optimizer.step()
        if "item_every_step" in self._switched:
            loss.item()
        if "accuracy_every_step" in self._switched:
            (scores.argmax(dim=1) == labels).float().mean().item()
        if "errors_printed" in self._switched:
            self._errors += (scores.argmax(dim=1) != labels).sum()

    @torch.no_grad()
    def _test(self) -> None:
        """Read samples one by one, as many as in validation and test, and classify them."""
        count, train = count_held_out(self._data), len(self._data.train)
        source = Subset(self._data.one_by_one, [index % train for index in range(count)])
        for samples, labels in DataLoader(source, batch_size=self._point.batch_size):
            scores = self._training.network(samples.to(self._device))
            (scores.argmax(dim=1) == labels.to(self._device)).sum().item()


def point_for_recipe(recipe: Recipe, point: Point) -> Point:
    """Return the training with the data path of the recipe; it has loader workers only if the training has."""
    path = recipe.loader or "resident"
    workers = point.loader_workers if path in LOADER_PATHS and point.data_path in LOADER_PATHS else 0
    return replace(point, data_path=path, loader_workers=workers)


def count_held_out(data: Data) -> int:
    """Return the number of validation and test samples together."""
    return len(data.validation) + len(data.test)


REPEATS = 9
"""Number of readings of each block: enough for a median that a single disturbance does not change."""

TRY_STEPS = 2
"""Number of steps, on a separate network, from which the duration of an epoch is estimated."""

WARM_UP_SHARE = 0.05
"""Share of a contender's time after which a slow training counts as warm."""

BLOCKS_SHARE = 0.5
"""Share of a contender's time for blocks, if whole epochs or trainings follow."""


class _UnsynchronizedDevice:
    """A device without synchronization, which is the mistake to demonstrate."""

    def synchronize(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Stopwatch:
    """The clocks of the recipes.

    Attributes:
        device: device to synchronize, if the recipe does so.
        clock: Crossover's clock in monotonic nanoseconds.
        wall: clock in nanoseconds of the time of day.
    """

    device: Synchronizable
    clock: Nanoseconds = time.perf_counter_ns
    wall: Nanoseconds = time.time_ns

    def seconds(self, work: Callable[[], object], switched: Sequence[str] = ()) -> float:
        """Return the seconds of `work` by a clock with these shortcuts; without any it is `core.measure.timer`'s."""
        clock = self.wall if "wall_clock" in switched else self.clock
        if not {"no_drain_before", "no_drain_after"}.intersection(switched):
            return Timer(device=self.device, clock=clock).time(work).seconds
        before, after = (
            Timer(device=_UnsynchronizedDevice() if name in switched else self.device, clock=clock)
            for name in ("no_drain_before", "no_drain_after")
        )
        begin = before.read()
        work()
        return (after.read() - begin) / 1e9


@dataclass(kw_only=True)
class Lesson:
    """All recipes on one contender.

    Attributes:
        fresh: builds a new training for a recipe.
        readings: recipe → seconds per epoch, one entry per reading.
        steps: recipe → number of steps of a reading.
        notes: a sentence for each recipe that was left out.
    """

    point: Point
    stopwatch: Stopwatch
    fresh: Callable[[Recipe], RecipeTraining]
    readings: dict[str, list[float]] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def time_blocks(self, recipes: Sequence[Recipe], *, late: Callable[[], bool], allowance_s: float) -> Iterator[None]:
        """Time blocks of all recipes in turns. Yields between timings.

        Args:
            recipes: recipes with the span `block`; `ours` comes first.
            late: returns whether the time is over; one round is always timed.
            allowance_s: seconds after which a slow training counts as warm.
        """
        warm: dict[str, tuple[RecipeTraining, int]] = {}
        for recipe in recipes:
            if warm and late():
                self.notes.append(f"{recipe.title} was left out: the budget was spent before it could start.")
                continue
            if "no_warm_up" not in recipe.switched:
                training = self.fresh(recipe)
                warm[recipe.name] = (training, self._warm_up(training, allowance_s))
            self.steps[recipe.name] = self.steps["ours"] if "no_warm_up" in recipe.switched else self._block_steps
            yield
        begun, turns = [recipe for recipe in recipes if recipe.name in self.steps], random.Random(self.point.seed)
        for repeat in range(REPEATS):
            if repeat and late():
                self.notes.append(f"Blocks were timed {repeat} instead of {REPEATS} times: the budget was spent.")
                return
            due = [recipe for recipe in begun if not (repeat and "one_repeat" in recipe.switched)]
            for recipe in turns.sample(due, len(due)):
                training, lead_in = warm.get(recipe.name) or (self.fresh(recipe), 0)
                self._block(recipe, training, lead_in)
                yield

    def time_epochs(self, recipe: Recipe, share_s: float, remaining_s: float, *, tested: float) -> Iterator[None]:
        """Time whole epochs, or a whole training, of a new network. Yields between timings.

        Args:
            recipe: recipe with the span `epoch` or `training`.
            share_s: maximum seconds; at least one epoch is always trained.
            remaining_s: remaining seconds; the recipe is omitted if an epoch takes longer.
            tested: number of validation and test samples per training sample.
        """
        per_epoch, trial_run = self.point.steps_per_epoch, self.fresh(recipe)
        epoch_s = self.stopwatch.seconds(partial(trial_run.advance, TRY_STEPS)) / TRY_STEPS * per_epoch
        epoch_s *= 1 + tested if "tests_inside" in recipe.switched else 1
        yield
        if epoch_s > remaining_s:
            needs, left = units.format_duration(epoch_s), units.format_duration(remaining_s)
            self.notes.append(f"{recipe.title} was left out: an epoch takes about {needs}, and {left} were left.")
            return
        epochs = max(1, min(self.point.epochs, int(share_s / epoch_s) if epoch_s > 0 else self.point.epochs))
        in_one = epochs if recipe.span == "training" else 1
        times = 1 if "one_repeat" in recipe.switched else epochs // in_one
        self.steps[recipe.name] = in_one * per_epoch
        self._synchronize()
        training = self.fresh(recipe)
        for _ in range(times):
            self._read(recipe, partial(_train, training, in_one, per_epoch), epochs=in_one)
            yield

    def variants(self, recipes: Sequence[Recipe], contender: str) -> tuple[Variant, ...]:
        """Return the readings in the order of the recipes, without recipes that have none."""
        return tuple(
            Variant(
                name=recipe.name,
                title=recipe.title,
                explains=recipe.explains,
                switched=recipe.switched,
                epoch_s=tuple(self.readings[recipe.name]),
                steps=self.steps[recipe.name],
                contender=contender,
            )
            for recipe in recipes
            if self.readings.get(recipe.name)
        )

    _block_steps: int = 0

    def _warm_up(self, training: RecipeTraining, allowance_s: float) -> int:
        """Train until warm as in `core.measure.contender`, and find the number of steps of a block and of a lead-in."""
        spent, steps, step_s = 0.0, 1, 0.0

        def train(count: int) -> float:
            seconds = self.stopwatch.seconds(partial(training.advance, count))
            training.settle()
            return seconds

        while steps == 1 or ((steps <= WARM_UP_STEPS or spent < WARM_UP_S) and spent < allowance_s):
            seconds = train(steps)
            spent, step_s, steps = spent + seconds, seconds / steps, steps * 2
        for _ in range(DISCARDED_BLOCKS):
            self._block_steps = block_steps(step_s)
            if spent < allowance_s:
                seconds = train(self._block_steps)
                spent, step_s = spent + seconds, seconds / self._block_steps
        self._block_steps = block_steps(step_s)
        return lead_in_steps(step_s) + training.prefetched

    def _block(self, recipe: Recipe, training: RecipeTraining, lead_in: int) -> None:
        """Train an untimed lead-in without synchronization, then time one block."""
        self._synchronize()
        training.advance(lead_in)
        steps = self.steps[recipe.name]
        self._read(recipe, partial(training.advance, steps), epochs=steps / self.point.steps_per_epoch)
        training.settle()

    def _read(self, recipe: Recipe, work: Callable[[], object], *, epochs: float) -> None:
        seconds = self.stopwatch.seconds(work, recipe.switched)
        if seconds > 0:
            self.readings.setdefault(recipe.name, []).append(seconds / epochs)
        else:
            self.notes.append(f"{recipe.title} lost a reading: its clock was changed meanwhile, or is too coarse.")

    def _synchronize(self) -> None:
        self.stopwatch.device.synchronize()


def run_clock_lesson(demonstration: Demonstration, stage: Stage) -> Clock:
    """Time the training of a demonstration on each contender, one after the other.

    Raises:
        DatasetUnavailable: the files of the data set are missing.
        OutOfMemory: the training does not fit.
    """
    point = demonstration.point
    stage.tell("loading data")
    data = datasets.load_point_data(point)
    return _Course(stage=stage, point=point, data=data).run()


@dataclass(kw_only=True)
class _Course:
    """The recipes of a demonstration on all contenders, within its budget; `done` of `total` parts are finished."""

    stage: Stage
    point: Point
    data: Data
    done: int = 0

    def __post_init__(self) -> None:
        asked = self.stage.demonstration
        recipes = [RECIPES[name] for name in asked.recipes]
        self._recipes, self._contenders = recipes, asked.contenders
        self._blocks = [recipe for recipe in recipes if recipe.span == "block"]
        self._whole = [recipe for recipe in recipes if recipe.span != "block"]
        readings = sum(1 if "one_repeat" in recipe.switched else REPEATS for recipe in self._blocks)
        self.parts = len(recipes) + readings
        self.total = self.parts * len(self._contenders)

    def run(self) -> Clock:
        variants: list[Variant] = []
        notes: list[str] = []
        for number, contender in enumerate(self._contenders):
            self.done = number * self.parts
            lesson = self._give(contender, self.stage.remaining_s / (len(self._contenders) - number))
            variants += lesson.variants(self._recipes, str(contender))
            notes += [note if self.total == self.parts else f"On {contender}: {note}" for note in lesson.notes]
        return Clock(variants=tuple(variants), notes=tuple(notes))

    def _give(self, contender: Contender, share_s: float) -> Lesson:
        """Run all recipes on one contender, within its share of the budget."""
        ends_s = self.stage.elapsed_s + share_s
        devices.initialise(contender.device)
        self.stage.tell(f"starting up {contender.spoken}", done=self.done, total=self.total)
        self.stage.use_threads(contender, self._threads(contender))
        device = devices.open_device(contender.device)
        resident = self.data.train.to(device.torch)

        def build_training(recipe: Recipe) -> RecipeTraining:
            return RecipeTraining(recipe, self.point, self.data, resident, device.torch)

        lesson = Lesson(point=self.point, stopwatch=Stopwatch(device=device), fresh=build_training)
        self._give_blocks(lesson, contender, share_s)
        self._give_epochs(lesson, contender, ends_s)
        return lesson

    def _give_blocks(self, lesson: Lesson, contender: Contender, share_s: float) -> None:
        ends_s = self.stage.elapsed_s + share_s * (BLOCKS_SHARE if self._whole else 1.0)

        def late() -> bool:
            return self.stage.elapsed_s >= ends_s

        for _ in lesson.time_blocks(self._blocks, late=late, allowance_s=WARM_UP_SHARE * share_s):
            self.done += 1
            self.stage.tell(f"timing blocks on {contender.spoken}", done=self.done, total=self.total)

    def _give_epochs(self, lesson: Lesson, contender: Contender, ends_s: float) -> None:
        tested = count_held_out(self.data) / len(self.data.train)
        for number, recipe in enumerate(self._whole):
            left_s = max(0.0, ends_s - self.stage.elapsed_s)
            for _ in lesson.time_epochs(recipe, left_s / (len(self._whole) - number), left_s, tested=tested):
                self.stage.tell(f"timing on {contender.spoken}: {recipe.title}", done=self.done, total=self.total)
            self.done += 1

    def _threads(self, contender: Contender) -> int:
        """Return the requested number of threads, or the fastest one that `MeasuredContender.try_threads` finds."""
        if contender.threads:
            return contender.threads
        measured = MeasuredContender(contender, point_for_recipe(RECIPES["ours"], self.point), self.data)
        measured.require_memory()
        self.stage.tell(f"trying numbers of threads for {contender.spoken}", done=self.done, total=self.total)
        try:
            measured.start()
            for _ in measured.try_threads():
                self.stage.raise_if_stopped()
        finally:
            measured.release()
        return measured.raw.threads


def _train(training: RecipeTraining, epochs: int, steps_per_epoch: int) -> None:
    for _ in range(epochs):
        training.advance(steps_per_epoch)
        training.end_epoch()
