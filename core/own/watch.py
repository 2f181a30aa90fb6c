"""A look at one's own loop while it trains: where its time goes, and what its steps do that nobody told of.

    for batch in core.watch(loader, model): ...
    with core.watch(model) as seen: ...

All time of the loop is clocked, but of short steps not each: most are passed by, with nothing of ours around them but a
count. Operations are counted in a few steps only, as many as keep the cost below a hundredth of the loop's time. Steps
are told apart by the batches, or else by the optimizer's own hook.
"""

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from core.answer.own.findings import StepFinding, list_findings
from core.answer.own.steps import CustomSteps
from core.measure.own import floor, watching
from core.measure.own.training import witness
from core.own import report
from core.own.pace import ENOUGH, MOST, Pace, count_batches

MOST_TOGETHER = 16
"""Batches of one update that are counted together at most."""


def watch(*what: Any, device: str | torch.device | None = None, quiet: bool = False) -> "Watch":
    """Watch one's own loop, which goes through what is returned, or is surrounded by a `with` of it.

    Args:
        what: batches, a module, or both; the module says on which device it trains and whether it learns.
        device: where it trains, if no module says so.
        quiet: whether to print nothing at the end.

    Raises:
        TypeError: something is neither batches nor a module.
    """
    modules = [each for each in what if isinstance(each, nn.Module)]
    batches = [each for each in what if not isinstance(each, nn.Module)]
    if len(modules) > 1 or len(batches) > 1 or not all(isinstance(each, Iterable) for each in batches):
        raise TypeError("watch takes batches that can be gone through, a module, or both")
    return Watch(next(iter(batches), None), next(iter(modules), None), device=device, quiet=quiet)


class Watch:
    """What is seen of a loop; complete once it is over."""

    _counting: "Watch | None" = None
    """Who counts at the moment: of loops within loops, one at a time."""

    def __init__(
        self,
        batches: Iterable[Any] | None,
        model: nn.Module | None,
        *,
        device: str | torch.device | None = None,
        quiet: bool = False,
        clock: watching.Clock = time.perf_counter_ns,
        synchronize: Callable[[], object] | None = None,
    ) -> None:
        """Take what is watched; `clock` and `synchronize` are those of the machine unless a test says otherwise."""
        self._batches, self._model, self._quiet = batches, model, quiet
        self._device = torch.device(device) if device is not None else _find_device(model)
        self._clock, self._synchronize = clock, synchronize or self._wait
        self._pace, self._counts = Pace(known_steps=count_batches(batches)), watching.Counts()
        self._mode: watching.OperationCounter | None = None
        self._stuck: watching.OperationCounter | None = None
        self._entered, self._left, self._together = False, 0, 1
        self._results: list[Any] = []
        self._optimizer: Optimizer | None = None
        self._updates = self._ended_ns = self._outside_ns = self._told = 0
        self._looking, self._is_hooked, self._passing, self._passed = True, False, 1, 0
        self._hooks = contextlib.ExitStack()
        self._first = self._witness()
        self._learns: bool | None = None
        self._floor: floor.DispatchOverhead | None = None

    def __iter__(self) -> Iterator[Any]:
        """Hand the batches on, and say what was seen when the loop is over, however it ends."""
        if self._batches is None:
            raise TypeError("there are no batches to go through: give them first, or use `with`")
        self._listen(self._on_update)
        clock, pace, batches = self._clock, self._pace, iter(self._batches)
        pace.once_ns = floor.estimate_overhead_cost_ns(self._device, self._clock)
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
        """How many batches there are, as a progress bar asks; raises TypeError where they do not say."""
        return len(self._batches)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def _hand_on_batches(self, batches: Iterator[Any]) -> Generator[Any, None, int]:
        """Hand batches on with nothing of ours around them; how many. If the loop ends here, they are told at once."""
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
        self._pace.once_ns = floor.estimate_overhead_cost_ns(self._device, self._clock)
        self._ended_ns = self._pace.start(self._clock())
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        """Say what was seen, also where the loop failed."""
        self._end()

    @property
    def steps(self) -> CustomSteps:
        """What was timed and counted of a step."""
        counts, pace, least = self._counts, self._pace, self._floor
        names = (*watching.NUMBERS, *watching.TIME_COLUMNS, "kept")
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
        """What stands out, that which costs most first."""
        return list_findings(self.steps)

    @property
    def shares(self) -> dict[str, float]:
        """Share of a step that each thing costs."""
        return {cause: share for cause, share in self.steps.costs.items()}  # noqa: C416

    @property
    def document(self) -> dict[str, Any]:
        """All of it as plain data."""
        return report.build_loop_document(self.steps, str(self._device), self._updates)

    def json(self) -> str:
        """All of it as JSON."""
        return json.dumps(self.document, indent=2)

    def __str__(self) -> str:
        """All of it in a few lines, as it is printed at the end."""
        return report.format_loop_report(
            self.steps, str(self._device), self._updates, by_batches=self._batches is not None
        )

    def _listen(self, hook: Callable[..., None]) -> None:
        self._hooks.callback(register_optimizer_step_post_hook(hook).remove)

    def _trains(self, optimizer: Optimizer) -> bool:
        """Whether steps of an optimizer are those of the loop: the first that updates the model."""
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
        if self._model is not None and not watching.compiles():
            self._model._forward_pre_hooks[id(self)] = self._on_forward
            self._is_hooked = True

    def _pass(self, steps: int) -> None:
        """Let steps pass by, with nothing of ours around them but a count."""
        self._looking, self._passing, self._passed = False, steps, 0
        if self._is_hooked and self._model is not None:
            self._model._forward_pre_hooks.pop(id(self), None)
            self._is_hooked = False

    def _on_forward(self, *_: object) -> None:
        """The model's first forward pass of a step: what came before it is told apart."""
        if not self._outside_ns:
            self._outside_ns = self._clock() - self._ended_ns
            if self._mode is not None:
                self._mode.begin()

    def _may_count(self, now: int) -> bool:
        if self._left:
            return True
        free = Watch._counting is None and not watching.compiles()
        self._together = 1
        if self._batches is not None and self._updates:
            self._together = min(MOST_TOGETHER, max(1, round(self._pace.steps / self._updates)))
        if not free or not self._pace.may_count(now, self._together):
            return False
        self._left = self._together
        return True

    def _enter(self) -> None:
        """Count from here on, and in a step of several batches on from the one before."""
        floor.rehearse()
        Watch._counting = self
        first = self._mode is None
        if self._mode is None:
            self._mode = watching.OperationCounter(
                self._device, watching.find_user_line, self._synchronize, self._clock, self._results
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

    def _exit(self, mode: watching.OperationCounter) -> None:
        """Take the mode away; one that somebody else left on top of it stays, and nothing more is counted."""
        if watching.on_top(mode):
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        else:
            self._stuck, self._pace.counted = mode, MOST
        self._entered = False

    def _end(self) -> None:
        """The loop is over: leave everything as it was found, and say what was seen."""
        if self._mode is not None and self._entered:
            self._exit(self._mode)
        if self._stuck is not None and watching.on_top(self._stuck):
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
                self._floor = floor.find_dispatch_overhead(self._device, self._synchronize, self._clock)
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
        """Whether a parameter is another than at the beginning; None where that cannot be seen."""
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
