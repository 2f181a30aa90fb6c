"""The duration of a training: seconds of its epochs and its start-up, and the epochs after which that is paid back.

Durations are reconstructed from the timed blocks of rows; nothing here measures.

For a GPU that this machine does not have, the module computes time and cost of a training from two entered prices.

The speedup above which a GPU is cheaper follows from the prices alone. No price is preset, and none is stored in a row.
Published list prices can be filled in; each shows the date on which it was read.
"""

import dataclasses
import datetime
import itertools
import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import units
from ..errors import InvalidValue
from ..files import documents
from ..question.experiment import Point, inline_name
from ..question.sweep import vary
from ..results.schema import Trial
from . import causes, predict
from .predict import Prediction, Range, find_level
from .predict.cards import FOLDER
from .speedup import speedup, step_time

NOTABLE_EXCESS = 0.005
"""Smallest relative difference that still shows when percentages are rounded to whole numbers."""


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """The point at which the challenger's faster steps have paid back its longer start-up.

    Attributes:
        epochs: epochs of training until this point, 0 if immediate; None if never or unknown.
    """

    epochs: float | None
    sentence: str


def epoch_times(trial: Trial) -> tuple[float, ...]:
    """Return the seconds of each requested epoch that ended by the last timed block, reconstructed from the blocks.

    A step in a timed block, or a lead-in step before it, costs the block's time per step. Any other step (the first,
    warm-up) costs the median.
    """
    if not trial.block_first_step:
        return ()
    timed = trial.block_first_step[-1] + trial.block_steps[-1]
    done = min(trial.epochs, timed // trial.steps_per_epoch)
    ends = training_seconds(trial, [epoch * trial.steps_per_epoch for epoch in range(done + 1)])
    return tuple(after - before for before, after in itertools.pairwise(ends))


def training_seconds(trial: Trial, steps: Iterable[int]) -> tuple[float, ...]:
    """Return the seconds of training, without start-up, until each of `steps` was done; counted as in `epoch_times`.

    Steps after the last block cost the median. Empty if no block was timed, or the steps are unknown.
    """
    if not trial.block_first_step:
        return ()
    segments = _segments(trial)
    counts = list(itertools.accumulate((count for count, _ in segments), initial=0))
    seconds = list(itertools.accumulate((count * step_s for count, step_s in segments), initial=0.0))
    rates = [step_s for _, step_s in segments] + [statistics.median(trial.step_s)]
    places = [(step, bisect_right(counts, step) - 1) for step in steps]
    return tuple(seconds[place] + (step - counts[place]) * rates[place] for step, place in places)


def epoch_check_sentence(trial: Trial) -> str:
    """Compare an epoch timed as a whole with its steps, to check that blocks represent real training."""
    median_s = step_time(trial).median_s
    if trial.epoch_check_s is None or median_s is None:
        return f"No epoch was timed as a whole on {inline_name(trial.contender)}."
    excess = trial.epoch_check_s / (trial.steps_per_epoch * median_s) - 1
    if abs(excess) < NOTABLE_EXCESS:
        return (
            f"On {inline_name(trial.contender)} an epoch timed as a whole took as long as its steps, to within 0.5 %."
        )
    direction = "longer" if excess > 0 else "less"
    took = f"{units.format_share(abs(excess))} {direction}"
    return f"On {inline_name(trial.contender)} an epoch timed as a whole took {took} than its steps."


def startup_s(trial: Trial) -> float | None:
    """Return the seconds of start-up in a fresh process: device, model, resident data, compiling and first step.

    Data that are not resident cost nothing here, nor does compiling in an eager variant. None if not measured.
    """
    needed = (trial.startup_device_s, trial.startup_build_s, trial.startup_first_step_s)
    known = [part for part in needed if part is not None]
    paid_once = (trial.startup_transfer_s or 0.0) + (trial.startup_compile_s or 0.0)
    return sum(known) + paid_once if len(known) == len(needed) else None


def find_break_even(baseline: Trial, challenger: Trial) -> BreakEven:
    """Return after how many epochs the challenger's faster steps have paid back its longer start-up.

    Raises:
        NotComparable: the rows are not comparable, see `speedup`.
    """
    outcome = speedup(baseline, challenger)
    start_base_s, start_s = startup_s(baseline), startup_s(challenger)
    if start_base_s is None or start_s is None:
        return BreakEven(epochs=None, sentence="The break-even is unknown: start-up was not measured on both devices.")
    if outcome.value is None or not outcome.has_winner or outcome.is_conditional:
        return BreakEven(epochs=None, sentence="The break-even is unknown, because the faster device is unknown.")
    # Both medians and the paired ratio are used, so that swapping the two rows changes only the sign.
    middle_s = math.sqrt(statistics.median(baseline.step_s) * statistics.median(challenger.step_s))
    saved_s = middle_s * (math.sqrt(outcome.value) - 1 / math.sqrt(outcome.value)) * baseline.steps_per_epoch
    found = _pay_back(baseline, challenger, start_base_s, start_s, saved_s)
    if baseline.training:  # a custom script, where a step counts as an epoch
        return BreakEven(epochs=found.epochs, sentence=found.sentence.replace("epoch", "step").split("; this")[0])
    if causes.is_fit(baseline):
        return BreakEven(epochs=found.epochs, sentence=causes.fit_wording(baseline, found.sentence.split("; this")[0]))
    return found


def _segments(trial: Trial) -> list[tuple[int, float]]:
    """Return (steps, seconds per step) in the order of the training's step counter, to the last block's end."""
    segments, done, median_s = [], 0, statistics.median(trial.step_s)
    for first, count, step_s in zip(trial.block_first_step, trial.block_steps, trial.step_s, strict=True):
        untimed = max(0, first - done)
        lead_in = min(untimed, trial.lead_in_steps)
        segments += [(untimed - lead_in, median_s), (lead_in + count, step_s)]
        done = first + count
    return segments


def _pay_back(baseline: Trial, challenger: Trial, start_base_s: float, start_s: float, saved_s: float) -> BreakEven:
    """Return the break-even; the challenger saves `saved_s` seconds per epoch, a negative number if it is slower."""
    name, other = inline_name(challenger.contender), inline_name(baseline.contender)
    extra_s = start_s - start_base_s
    both = f"{units.format_duration(start_s)} against {units.format_duration(start_base_s)}"
    start = f"start-up {both}"
    if saved_s > 0 and extra_s <= 0:
        sentence = f"Training on {name} pays off at once: it starts no later than on {other} ({start}) and is faster."
        return BreakEven(epochs=0.0, sentence=sentence)
    if saved_s > 0:
        epochs = extra_s / saved_s
        never = epochs > baseline.epochs
        beyond = f"; this training has only {units.format_quantity(baseline.epochs, 'epoch')}" if never else ""
        sentence = (
            f"Training on {name} {'would pay' if never else 'pays'} back its longer start-up ({both}) after "
            f"{_epochs(epochs)}, saving {units.format_duration(saved_s)} in each{beyond}."
        )
        return BreakEven(epochs=epochs, sentence=sentence)
    if extra_s >= 0:
        sentence = f"Training on {name} never pays off: it starts no sooner than on {other} ({start}) and is slower."
        return BreakEven(epochs=None, sentence=sentence)
    sentence = (
        f"Training on {name} starts sooner than on {other} ({start}) but is slower: "
        f"it is ahead for {_epochs(extra_s / saved_s)} and never again."
    )
    return BreakEven(epochs=None, sentence=sentence)


def _epochs(number: float) -> str:
    """Format a number of epochs with useful precision: "1.4 epochs", "62 epochs"."""
    if number < 1:
        return "less than one epoch"
    said = units.format_significant(number, 2)
    return "one epoch" if said == "1.0" else f"{said} epochs"


STALE_DAYS = 90
"""Days after which a list price counts as outdated."""

MAX_PRICE = 1e6


@dataclass(frozen=True, kw_only=True)
class ListPrice:
    """A published price of a rented machine.

    Attributes:
        card: key of its card; empty for a machine without one, or with a card that is not predicted.
        title: title of the card, or the number of processors.
        source: address at which the price was read on the date `retrieved` (ISO 8601).
    """

    card: str
    title: str
    usd_per_hour: float
    provider: str
    instance: str
    source: str
    retrieved: str

    def is_stale(self, today: datetime.date) -> bool:
        """Return whether the price was read too long ago to be shown as current."""
        return (today - datetime.date.fromisoformat(self.retrieved)).days > STALE_DAYS


@dataclass(frozen=True, kw_only=True)
class _Prices:
    prices: tuple[ListPrice, ...]


def load_list_prices() -> tuple[ListPrice, ...]:
    """Return a few published list prices, which no form fills in by default."""
    found = documents.read_json(FOLDER / "prices.json", _Prices)
    return found.prices if found else ()


def find_list_prices(card: str) -> tuple[ListPrice, ListPrice] | None:
    """Return published prices of a CPU and of a GPU at one provider; None without a price of the GPU."""
    listed = load_list_prices()
    for gpu in listed:
        for cpu in listed:
            if gpu.card == card and card and cpu.title.endswith("CPUs") and cpu.provider == gpu.provider:
                return cpu, gpu
    return None


def parse_prices(text: str) -> dict[str, float]:
    """Parse prices by side from `cpu=0.20,gpu=0.79`, or with keys of GPUs in place of `gpu`.

    Raises:
        InvalidValue: the text has another form, the price of the CPU is missing, or a price is below 0.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, price = part.strip().partition("=")
        try:
            found[name.strip().lower()] = float(price)
        except ValueError:
            raise InvalidValue("price", text, "prices per hour such as cpu=0.20,gpu=0.79") from None
    if "cpu" not in found or len(found) < 2 or not all(0 <= price <= MAX_PRICE for price in found.values()):
        raise InvalidValue("price", text, "prices per hour, 0 or more, of the CPU and a GPU: cpu=0.20,gpu=0.79")
    return found


def break_even_speedup(cpu_price: float, gpu_price: float) -> float:
    """Return how many times as fast as the CPU a GPU must be to be cheaper; infinite where the CPU costs nothing."""
    return gpu_price / cpu_price if cpu_price > 0 else math.inf if gpu_price > 0 else 0.0


def break_even_sentence(cpu_price: float, gpu_price: float) -> str:
    """Return a sentence with the break-even speedup, which needs no prediction."""
    needed = break_even_speedup(cpu_price, gpu_price)
    if math.isinf(needed):
        return "The CPU costs nothing here, so no GPU is cheaper."
    if needed == 0:
        return "The GPU costs nothing here, so it is never more expensive."
    return f"At these prices the GPU must be {units.format_ratio(needed)} as fast as the CPU to be cheaper."


@dataclass(frozen=True, kw_only=True)
class CostRatio:
    """The cost of a training on the GPU over its cost on the CPU, from `low` to `high`."""

    low: float
    high: float

    @property
    def sentence(self) -> str:
        """Sentence on which device is cheaper."""
        if math.isinf(self.low):
            return "The CPU costs nothing here, so it is cheaper."
        ends = f"{units.format_rough_ratio(self.low)} to {units.format_rough_ratio(self.high)}"
        told = f"The GPU is predicted to cost {ends} as much as the CPU for the same training"
        if self.high < 1:
            return f"{told}: cheaper."
        return f"{told}: dearer." if self.low > 1 else f"{told}: inconclusive."


def compare_cost(cpu_price: float, gpu_price: float, speedup: Range) -> CostRatio:
    """Return the ratio of costs for prices per hour and a speedup, predicted or measured."""
    needed = break_even_speedup(cpu_price, gpu_price)
    return CostRatio(low=needed / speedup.high, high=needed / speedup.low)


def cheaper_from(curve: Mapping[str, Any], cpu_price: float, gpu_price: float) -> dict[str, float | None] | None:
    """Return the sizes of a sampled curve between which the GPU becomes cheaper, in the form of its `crossover`."""
    needed = break_even_speedup(cpu_price, gpu_price)
    if not 0 < needed < math.inf:
        return None
    return find_level(curve["values"], curve["speedup"]["low"], curve["speedup"]["high"], needed)


def describe_costs(point: Point, curve: Mapping[str, Any], prices: Mapping[str, float]) -> list[str]:
    """Describe the time and, with prices of `cpu` and `gpu`, the cost of the whole training at each size of a curve."""
    found = []
    columns = (
        curve["cpu_step_s"],
        *(curve[name][end] for name in ("gpu_step_s", "speedup") for end in ("low", "high")),
    )
    for value, cpu_s, low, high, least, most in zip(curve["values"], *columns, strict=True):
        steps = vary(point, {curve["axis"]: int(value)}).total_steps
        said = [_describe_training(cpu_s and cpu_s * steps, Range(low=low, high=high).scale(steps))] if low else []
        if least and prices:
            said.append(compare_cost(prices["cpu"], prices["gpu"], Range(low=least, high=most)).sentence)
        found.append(" ".join(said))
    return found


def _describe_training(cpu_s: float | None, gpu_s: Range) -> str:
    here = f"; on this CPU it takes {units.format_duration(cpu_s, 2)}" if cpu_s else ""
    return f"The training is predicted to take {_durations(gpu_s)} on the GPU, without start-up{here}."


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The answer on whether to use a card for a training, with time and cost.

    Attributes:
        cpu_epoch_s: seconds of an epoch on the CPU, without start-up; `gpu_epoch_s` is the range on the GPU.
        cpu_training_s: seconds of the whole training on the CPU; `gpu_training_s` is the range on the GPU.
        break_even: how many times as fast the GPU must be to be cheaper; None without prices.
        cost: ratio of the costs; None without prices, or if no speedup is predicted.
    """

    prediction: Prediction
    cpu_epoch_s: float | None
    gpu_epoch_s: Range | None
    cpu_training_s: float | None
    gpu_training_s: Range | None
    break_even: float | None = None
    break_even_sentence: str = ""
    cost: CostRatio | None = None

    @property
    def answer(self) -> str:
        """One of `core.answer.predict.ANSWERS`."""
        return self.prediction.answer

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences of the answer, the break-even first."""
        told = [self.break_even_sentence, self.prediction.sentence]
        if self.prediction.speedup and self.gpu_training_s and self.cpu_training_s:
            told.append(_describe_training(self.cpu_training_s, self.gpu_training_s))
        told.append(self.cost.sentence if self.cost else "")
        told += [reason for reason in self.prediction.reasons if reason not in self.prediction.sentence]
        return tuple(filter(None, told))

    def to_json(self) -> dict[str, Any]:
        """Return data for JSON, with the answer and the sentences."""
        data = dataclasses.asdict(self)
        cost = dataclasses.asdict(self.cost) | {"sentence": self.cost.sentence} if self.cost else None
        return {"answer": self.answer} | data | {"cost": cost, "sentences": list(self.sentences)}


def choose(
    point: Point, gpu: str | Iterable[str], rows: Iterable[Trial] = (), *, prices: str | Mapping[str, float] = ""
) -> tuple[Choice, ...]:
    """Predict whether GPUs that this machine does not have would train faster than the CPU of the rows.

    Args:
        point: the training.
        gpu: keys or names of cards, also as one text with commas: `v100,t4`.
        rows: rows of one machine, as `Store.trials` returns them; real runs on such cards are compared as well.
        prices: prices per hour, `cpu=0.20,gpu=0.79` or by key of a card; none by default.

    Raises:
        InvalidValue: there is no such card, or a price is invalid.
        NotComparable: the CPU rows are of several machines.
    """
    names = [name.strip() for name in (gpu.split(",") if isinstance(gpu, str) else gpu)]
    known, asked = list(rows), parse_prices(prices) if isinstance(prices, str) and prices else dict(prices or {})
    cpu, record = predict.read_cpu(known), predict.compare_runs(known)
    return tuple(_choose_card(point, predict.predict(point, name, cpu, record=record), asked) for name in names)


def _choose_card(point: Point, made: Prediction, prices: Mapping[str, float]) -> Choice:
    steps, whole = point.steps_per_epoch, point.total_steps
    price = prices.get(made.card, prices.get("gpu"))
    known = "cpu" in prices and price is not None
    cpu_price, gpu_price = prices.get("cpu", 0.0), price or 0.0
    return Choice(
        prediction=made,
        cpu_epoch_s=made.cpu_s and made.cpu_s * steps,
        gpu_epoch_s=made.step_s and made.step_s.scale(steps),
        cpu_training_s=made.cpu_s and made.cpu_s * whole,
        gpu_training_s=made.step_s and made.step_s.scale(whole),
        break_even=break_even_speedup(cpu_price, gpu_price) if known else None,
        break_even_sentence=break_even_sentence(cpu_price, gpu_price) if known else "",
        cost=compare_cost(cpu_price, gpu_price, made.speedup) if known and made.speedup else None,
    )


def _durations(span: Range) -> str:
    return f"{units.format_duration(span.low, 2)} to {units.format_duration(span.high, 2)}"
