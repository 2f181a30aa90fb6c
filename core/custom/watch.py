"""Watch a training loop while it runs: where its time goes, and what its steps do.

    for batch in core.watch(loader, model): ...
    with core.watch(model) as report: ...

All time of the loop is clocked. Of short steps only some are examined, and only about a hundredth of the loop's time
goes into counting operations, because counting makes a step slower.
"""

import contextlib
import dataclasses
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from .. import units
from ..answer.custom_findings import Cause, CustomSteps, StepFinding, list_findings, weigh_long_steps
from ..measure.custom import op_counter
from ..measure.custom.training import StepTimes, witness
from ..question.lanes import device_title

WARM_UP = 10
"""Steps that are left out where there are more: they set up what later ones have."""

LOOK_EVERY_S = 0.005
"""Seconds of a loop for each step that is looked at. A look takes 4 millionths, and some 30 where none was for long, as
nothing of what looks is in the processor's caches then."""

MOST_PASSED = 1_000
"""Steps that are passed by at once, at most."""

MIN_LOOKS = 3
"""Minimum of observed steps before the time before a step is reported."""

LEAST_S = 0.25
"""Seconds of a loop before anything is counted."""

SHARE = 0.01
"""Share of a loop's time that counting may cost."""

MOST, ENOUGH = 8, 3
"""Counted steps at most, and as many as suffice."""

FIRST_COST_S = 0.02
"""Assumed cost of the first counted step in seconds, at most, before it is measured."""


def count_batches(batches: object) -> int:
    """Return the number of batches; 0 if unknown."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except Exception:  # whatever somebody's own batches raise
        return 0


@dataclass
class Pace:
    """Sums of a loop's steps; counted steps are summed separately.

    Attributes:
        known_steps: number of steps of the loop; 0 if unknown.
        once_ns: the one-time cost of counting that is still to come.
        steps: so far.
        plain: of these, uncounted steps, whose times count.
        plain_ns: time of these.
        looked: of these, those that were timed one by one.
        before_ns: time before each of the latter: its batch.
        total_ns: of all.
        counted: number of counted steps.
        cost_ns: time that counting took.
        due_ns: of the clock, before which nothing is to be counted.
    """

    known_steps: int = 0
    once_ns: float = 0.0
    steps: int = 0
    plain: int = 0
    plain_ns: int = 0
    looked: int = 0
    before_ns: int = 0
    total_ns: int = 0
    counted: int = 0
    cost_ns: int = 0
    due_ns: float = math.inf
    _last_cost_ns: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _times: StepTimes = field(default_factory=StepTimes)

    def start(self, now: int) -> int:
        """Begin a loop, or continue with its next pass; returns the time."""
        self.due_ns = math.inf if self.counted >= MOST else now + max(0, LEAST_S * 1e9 - self.total_ns)
        return now

    @property
    def step_s(self) -> float | None:
        """Seconds per uncounted step, including the time before it."""
        return self.plain_ns / 1e9 / self.plain if self.plain else None

    @property
    def before_s(self) -> float | None:
        """Seconds before an uncounted step; None if too few were observed."""
        return self.before_ns / 1e9 / self.looked if self.looked >= MIN_LOOKS else None

    @property
    def uneven(self) -> tuple[float, float, float]:
        """Share of steps that take much longer than the usual, of the time what that costs, and how much longer."""
        return weigh_long_steps(self._times.taken_ns)

    @property
    def passing(self) -> int:
        """Steps to pass by now: at random around the wanted mean, as what is slow may come again at regular steps."""
        if self.steps <= WARM_UP or self.plain_ns >= LOOK_EVERY_S * 1e9 * self.plain:
            return 0
        wanted = LOOK_EVERY_S * 1e9 * self.plain / max(1, self.plain_ns)
        return int(min(MOST_PASSED, 2 * wanted * self._chance.random()))

    def look(self, before_ns: int, within_ns: int) -> None:
        """Add an uncounted step that was timed by itself."""
        self.add_steps(1, before_ns + within_ns)
        self.looked += 1
        self.before_ns += before_ns
        self._times.add(within_ns)

    def add_steps(self, steps: int, taken_ns: int) -> None:
        """Add uncounted steps that were not timed one by one."""
        if self.steps <= WARM_UP < self.steps + steps:
            self.plain = self.plain_ns = self.looked = self.before_ns = 0
            self._times.clear()
        self.steps += steps
        self.plain += steps
        self.plain_ns += taken_ns
        self.total_ns += taken_ns

    def add_counted(self, before_ns: int, within_ns: int, now: int, *, more: bool = False) -> None:
        """Take in a step that was counted, and say when the next may be: at once if `more` of an update are to come."""
        self.steps += 1
        self.total_ns += before_ns + within_ns
        self.counted += not more
        self._last_cost_ns = max(0, before_ns + within_ns - self.plain_ns // max(1, self.plain))
        self.cost_ns += self._last_cost_ns
        pause_ns = math.inf if self.counted >= MOST else self.total_ns // (2 * MOST)
        self.due_ns = now if more else now + pause_ns

    def may_count(self, now: int, steps: int) -> bool:
        """Return whether so many steps may be counted now; if not, the next check is a while later."""
        mean_ns = (self.step_s or 0.0) * 1e9
        whole_ns = max(self.total_ns, mean_ns * self.known_steps)
        each_ns = self._last_cost_ns if self.counted else min(mean_ns, FIRST_COST_S * 1e9)
        if self.steps > WARM_UP and self.once_ns + self.cost_ns + steps * each_ns <= SHARE * whole_ns:
            return True
        self.due_ns = now + max(self.total_ns // 4, mean_ns)
        return False


MOST_TOGETHER = 16
"""Batches of one update that are counted together at most."""


def watch(*what: Any, device: str | torch.device | None = None, quiet: bool = False) -> "Watch":
    """Watch your own loop: iterate over the returned object, or surround the loop with it in a `with` statement.

    Args:
        what: batches, a module, or both; the module shows on which device it trains and whether it learns.
        device: where it trains, if no module shows it.
        quiet: whether to print nothing at the end.

    Raises:
        TypeError: something is neither batches nor a module.
    """
    modules = [each for each in what if isinstance(each, nn.Module)]
    batches = [each for each in what if not isinstance(each, nn.Module)]
    if len(modules) > 1 or len(batches) > 1 or not all(isinstance(each, Iterable) for each in batches):
        raise TypeError("watch takes an iterable of batches, a module, or both")
    return Watch(next(iter(batches), None), next(iter(modules), None), device=device, quiet=quiet)


class Watch:
    """Observations of a loop; complete once it is over."""

    _counting: "Watch | None" = None
    """The instance that counts at the moment: of nested loops, one at a time."""

    def __init__(
        self,
        batches: Iterable[Any] | None,
        model: nn.Module | None,
        *,
        device: str | torch.device | None = None,
        quiet: bool = False,
        clock: op_counter.Clock = time.perf_counter_ns,
        synchronize: Callable[[], object] | None = None,
    ) -> None:
        """Take what is watched; `clock` and `synchronize` are those of the machine unless a test says otherwise."""
        self._batches, self._model, self._quiet = batches, model, quiet
        self._device = torch.device(device) if device is not None else _find_device(model)
        self._clock, self._synchronize = clock, synchronize or self._wait
        self._pace, self._counts = Pace(known_steps=count_batches(batches)), op_counter.Counts()
        self._mode: op_counter.OperationCounter | None = None
        self._stuck: op_counter.OperationCounter | None = None
        self._entered, self._left, self._together = False, 0, 1
        self._results: list[Any] = []
        self._optimizer: Optimizer | None = None
        self._updates = self._ended_ns = self._outside_ns = self._told = 0
        self._looking, self._is_hooked, self._passing, self._passed = True, False, 1, 0
        self._hooks = contextlib.ExitStack()
        self._first = self._witness()
        self._learns: bool | None = None
        self._floor: op_counter.DispatchOverhead | None = None

    def __iter__(self) -> Iterator[Any]:
        """Hand the batches on, and say what was seen when the loop is over, however it ends."""
        if self._batches is None:
            raise TypeError("there are no batches to iterate over: pass them first, or use `with`")
        self._listen(self._on_update)
        clock, pace, batches = self._clock, self._pace, iter(self._batches)
        pace.once_ns = op_counter.estimate_overhead_cost_ns(self._device, self._clock)
        ended = pace.start(clock())
        try:
            for batch in batches:
                given = clock()
                if given >= pace.due_ns and self._may_count(given):
                    self._enter()
                    before, given = given - ended, clock()
                    yield batch
                    ended = self._leave(before, given)
                    continue
                yield batch
                now = clock()
                pace.look(given - ended, now - given)
                ended = now
                if wanted := pace.passing:
                    passed = yield from self._hand_on_batches(itertools.islice(batches, wanted))
                    ended = clock()
                    pace.add_steps(passed, ended - now)
                    if passed < wanted:
                        return
        finally:
            self._end()

    def __len__(self) -> int:
        """Return the number of batches, for a progress bar; raises TypeError if unknown."""
        return len(self._batches)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def _hand_on_batches(self, batches: Iterator[Any]) -> Generator[Any, None, int]:
        """Yield batches with no Crossover code around them; return their number.

        If the loop ends here, they are added at once.
        """
        count = 0
        try:
            for batch in batches:
                yield batch
                count += 1
        except BaseException:
            self._pace.steps += count
            raise
        return count

    def __enter__(self) -> Self:
        """Begin; a step ends where an optimizer of PyTorch has updated the model."""
        self._listen(self._on_step)
        self._pace.once_ns = op_counter.estimate_overhead_cost_ns(self._device, self._clock)
        self._ended_ns = self._pace.start(self._clock())
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        """Say what was seen, also where the loop failed."""
        self._end()

    @property
    def steps(self) -> CustomSteps:
        """The times and counts of a step."""
        counts, pace, least = self._counts, self._pace, self._floor
        names = (*op_counter.NUMBERS, *op_counter.TIME_COLUMNS, "kept")
        known: dict[str, Any] = {name: tuple(getattr(counts, name)) for name in names}
        known["before_s" if self._batches is None else "loader_s"] = pace.before_s or None
        return CustomSteps(
            on_host=self._device.type == "cpu",
            step_s=pace.step_s,
            steps=pace.steps,
            looked=pace.looked,
            uneven=pace.uneven,
            waits_at=counts.waits_at,
            learns=self._learns,
            floor_s=(least.call_s, least.inside_s, least.read_s) if least else (),
            **known,
        )

    @property
    def findings(self) -> list[StepFinding]:
        """The findings, in order of their cost, the largest first."""
        return list_findings(self.steps)

    @property
    def shares(self) -> dict[str, float]:
        """Share of a step that each thing costs."""
        return {cause: share for cause, share in self.steps.costs.items()}  # noqa: C416

    @property
    def document(self) -> dict[str, Any]:
        """Return all results as a dictionary for JSON."""
        return build_loop_document(self.steps, str(self._device), self._updates)

    def json(self) -> str:
        """Return all results as JSON."""
        return json.dumps(self.document, indent=2)

    def __str__(self) -> str:
        """Return all results in a few lines, as printed at the end."""
        return format_loop_report(self.steps, str(self._device), self._updates, by_batches=self._batches is not None)

    def _listen(self, hook: Callable[..., None]) -> None:
        self._hooks.callback(register_optimizer_step_post_hook(hook).remove)

    def _trains(self, optimizer: Optimizer) -> bool:
        """Return whether steps of an optimizer are those of the loop: the first that updates the model."""
        if self._optimizer is None:
            ours = {id(each) for each in self._model.parameters()} if self._model is not None else None
            groups = optimizer.param_groups
            if ours is None or any(id(each) in ours for group in groups for each in group["params"]):
                self._optimizer = optimizer
        return optimizer is self._optimizer

    def _on_update(self, optimizer: Optimizer, _arguments: object, _options: object) -> None:
        self._updates += optimizer is self._optimizer or self._trains(optimizer)

    def _on_step(self, optimizer: Optimizer, _arguments: object, _options: object) -> None:
        """A step is over, and the next begins."""
        if optimizer is not self._optimizer and not self._trains(optimizer):
            return
        self._passed += 1
        if self._passed < self._passing:
            return
        now, self._updates = self._clock(), self._updates + self._passed
        if self._mode is not None:
            self._ended_ns = self._leave(self._outside_ns, self._ended_ns + self._outside_ns)
        elif self._looking and self._is_hooked:
            self._pace.look(self._outside_ns, now - self._ended_ns - self._outside_ns)
            self._ended_ns = now
        else:
            self._pace.add_steps(self._passed, now - self._ended_ns)
            self._ended_ns = now
        passing = self._pace.passing if self._looking else 0
        if passing:
            self._pass(passing)
        else:
            self._look()
            if now >= self._pace.due_ns and self._may_count(now):
                self._enter()
                self._ended_ns = self._clock()

    def _look(self) -> None:
        """See what comes before the forward pass of the next step; what is compiled has no such hook.

        The hook is put in by hand: a handle, which none needs, would cost as much as all else of a look.
        """
        self._looking, self._passing, self._passed, self._outside_ns = True, 1, 0, 0
        if self._model is not None and not op_counter.compiles():
            self._model._forward_pre_hooks[id(self)] = self._on_forward
            self._is_hooked = True

    def _pass(self, steps: int) -> None:
        """Let steps pass with nothing around them but a count."""
        self._looking, self._passing, self._passed = False, steps, 0
        if self._is_hooked and self._model is not None:
            self._model._forward_pre_hooks.pop(id(self), None)
            self._is_hooked = False

    def _on_forward(self, *_: object) -> None:
        """Record the time before the model's first forward pass of a step separately."""
        if not self._outside_ns:
            self._outside_ns = self._clock() - self._ended_ns
            if self._mode is not None:
                self._mode.begin()

    def _may_count(self, now: int) -> bool:
        if self._left:
            return True
        free = Watch._counting is None and not op_counter.compiles()
        self._together = 1
        if self._batches is not None and self._updates:
            self._together = min(MOST_TOGETHER, max(1, round(self._pace.steps / self._updates)))
        if not free or not self._pace.may_count(now, self._together):
            return False
        self._left = self._together
        return True

    def _enter(self) -> None:
        """Count from here on, and in a step of several batches on from the one before."""
        op_counter.rehearse()
        Watch._counting = self
        first = self._mode is None
        if self._mode is None:
            self._mode = op_counter.OperationCounter(
                self._device, op_counter.find_user_line, self._synchronize, self._clock, self._results
            )
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        self._entered = True
        self._mode.begin() if first else self._mode.resume()

    def _leave(self, before_ns: int, began_ns: int) -> int:
        """Count no more; the time."""
        mode, now = self._mode, self._clock()
        if mode is None or not self._entered:
            return now
        mode.add_host_time()
        self._exit(mode)
        self._left -= 1
        self._pace.add_counted(before_ns, now - began_ns, now, more=self._left > 0)
        if not self._left:
            self._counts.add(mode, self._together)
            self._counts.kept.append(mode.alive)
            mode.follow()
            self._mode, Watch._counting = None, None
        return self._clock()

    def _exit(self, mode: op_counter.OperationCounter) -> None:
        """Take the mode away; one that somebody else left on top of it stays, and nothing more is counted."""
        if op_counter.on_top(mode):
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        else:
            self._stuck, self._pace.counted = mode, MOST
        self._entered = False

    def _end(self) -> None:
        """The loop is over: leave everything as it was found, and say what was seen."""
        if self._mode is not None and self._entered:
            self._exit(self._mode)
        if self._stuck is not None and op_counter.on_top(self._stuck):
            self._stuck.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        if Watch._counting is self:
            Watch._counting = None
        self._mode, self._left = None, 0
        if not self._looking:
            self._pace.steps, self._updates = self._pace.steps + self._passed, self._updates + self._passed
        self._pass(1)
        self._hooks.close()
        if not self._pace.steps:
            if self._batches is None:
                self._tell()
            return
        with contextlib.suppress(Exception):  # a device in trouble; what was clocked is worth saying
            self._learns = self._has_changed()
            if self._counts.operations and self._floor is None:
                self._floor = op_counter.find_dispatch_overhead(self._device, self._synchronize, self._clock)
        self._tell()

    def _tell(self) -> None:
        """Print it once, and once more when a later pass has counted enough."""
        counted = min(ENOUGH, len(self._counts.operations))
        if not self._quiet and (not self._told or self._told <= counted == ENOUGH):
            self._told = counted + 1
            sys.stdout.write(f"{self}\n")

    def _witness(self) -> list[Tensor]:
        with contextlib.suppress(Exception):  # some modules have parameters that are elsewhere
            return witness(self._model.parameters() if self._model is not None else ())
        return []

    def _has_changed(self) -> bool | None:
        """Return whether a parameter has changed since the beginning; None where that cannot be seen."""
        pairs = zip(self._first, self._witness(), strict=False)
        return any(not torch.equal(before, now) for before, now in pairs) if self._first else None

    def _wait(self) -> None:
        """Wait for the device; not while a graph is recorded, which would fail."""
        if self._device.type != "cpu" and not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
            torch.accelerator.synchronize(self._device)


def _find_device(model: nn.Module | None) -> torch.device:
    """Of a model's first parameter; without one CUDA's if it is in use, else the CPU."""
    for parameter in model.parameters() if model is not None else ():
        return parameter.device
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_initialized() else torch.device("cpu")


NAMES: dict[Cause, str] = {
    "loader": "waiting for batches",
    "before": "before the forward pass",
    "transfer": "placing them",
    "host": "host between operations",
    "waits": "reading values",
    "calls": "calling operations",
    "float64": "arithmetic in float64",
    "arithmetic": "arithmetic",
    "uneven": "long steps",
}

NOTHING_PASSED = "No batch was completed, so there is nothing to report."
NOTHING_UPDATED = (
    "No step was seen: no optimizer of PyTorch updated the model. If something else updates the model, iterate over "
    "the batches: for batch in core.watch(loader, model)."
)
"""Message for a loop without a step."""

SMALLEST = 0.005
"""Share below which a part is not listed."""


def build_loop_document(steps: CustomSteps, device: str, updates: int) -> dict[str, Any]:
    """Build a dictionary of all results: device, steps and their time, updates, shares, findings, and raw counts."""
    raw = dataclasses.asdict(steps)
    return {
        "device": device,
        "steps": steps.steps,
        "step_s": steps.step_s,
        "updates": updates,
        "shares": dict(steps.costs),
        "findings": [dataclasses.asdict(found) for found in list_findings(steps)],
        "seen": {name: list(value) if isinstance(value, tuple) else value for name, value in raw.items()},
    }


def format_loop_report(steps: CustomSteps, device: str, updates: int, *, by_batches: bool) -> str:
    """Return the results for people."""
    if not steps.steps:
        return NOTHING_PASSED if by_batches else NOTHING_UPDATED
    looked, counted = units.format_count(steps.looked), units.format_count(len(steps.operations))
    lines = [
        f"{_describe_steps(steps, updates, by_batches)} on {device_title(device)}; {looked} timed, {counted} counted"
    ]
    parts = [
        f"{NAMES[cause]} {units.format_share(share)}"
        for cause, share in sorted(steps.costs.items(), key=lambda part: -part[1])
        if share >= SMALLEST
    ]
    if parts:
        lines.append(f"  of a step: {', '.join(parts)}")
    lines += [f"  {place}. {found.sentence}" for place, found in enumerate(list_findings(steps), 1)] or [
        "  Nothing unusual was found."
    ]
    return "\n".join([*lines, *(f"  {said}" for said in _list_unknowns(steps, updates))])


def _describe_steps(steps: CustomSteps, updates: int, by_batches: bool) -> str:
    each = f" of {units.format_duration(steps.step_s)}" if steps.step_s else ""
    words = ("batch", "batches") if by_batches else ("step", "steps")
    counted = f"{units.format_quantity(steps.steps, *words)}{each}"
    several = by_batches and updates and round(steps.steps / updates) > 1
    return f"{counted}, {round(steps.steps / updates)} an update," if several else counted


def _list_unknowns(steps: CustomSteps, updates: int) -> list[str]:
    said = []
    if not updates:
        said.append("No optimizer of PyTorch took a step: the number of batches per update is unknown.")
    if not steps.operations:
        said.append("Its operations were not counted, because the loop was too short or its steps are compiled.")
    if steps.learns is None:
        said.append("It is unknown whether it learns: no model was given.")
    return said
