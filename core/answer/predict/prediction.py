"""Predict whether a GPU that is not available would be faster: a range, its bound, and reasons why it is inconclusive.

The time of a step on the GPU is its batch, its copy, and the longer of the host's launches and the card's computation.
The time that a host takes to launch an operation is only known as a wide range, so small models are mostly undecided. A
CPU that was busy, or timed with one thread only, permits no decision.
"""

import contextlib
import dataclasses
import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ... import units
from ...errors import InvalidValue, NotComparable
from ...question import models
from ...question.experiment import Point
from ...question.fields import LOADER_PATHS, TRAINING
from ...question.lanes import PLAIN, Lane
from ...question.models.operations import GATHERED_BYTES, StepWork, describe_step
from ...results.schema import Trial
from .. import causes, interference
from ..lessons.limits import count_launches
from ..statistics import median_interval
from . import cards
from .cards import Card, Comparison, Constants, Work

Answer = Literal["gpu_faster", "cpu_faster", "no_matter", "cannot_tell", "not_covered"]

ANSWERS: dict[Answer, str] = {
    "gpu_faster": "GPU faster",
    "cpu_faster": "CPU faster",
    "no_matter": "no GPU would matter",
    "cannot_tell": "inconclusive",
    "not_covered": "not covered",
}
"""Possible answers of a prediction, in words."""

Bound = Literal["", "loader", "copy", "launches", "arithmetic"]

PARTS = ("loader", "copy", "launches", "arithmetic", "update")
"""Parts of a step in the order in which they happen; launches overlap the last two."""

CONFIDENCE = {
    "timed": "90 % of published trainings like these were within such a range.",
    "data_sheet": "The range is wider: only the data sheet of this card is known.",
}
"""Meaning of a range, by the basis of its GPU."""

NOT_COVERED = {
    "mps": "Not covered: Apple GPUs have no published timings that the prediction could be checked with.",
    "amd": "Not covered: published trainings on AMD GPUs are large transformers only.",
    "xpu": "Not covered: Intel GPUs have no published timings that the prediction could be checked with.",
    "precision": "Not covered: predictions are for float32 without TF32; a lower precision is 2 to 8 times faster.",
    "float64": "Not covered: predictions are for float32; the float64 speed of cards differs by a factor of 30.",
    "compile": "Not covered: predictions are for eager PyTorch, without torch.compile or CUDA graphs.",
    "boosting": "Not covered: a fit of boosted trees is not a sequence of tensor operations.",
    "several": "Not covered: predictions are for one GPU.",
    "recurrent": "Not covered: no published training with fused recurrent layers can check the prediction.",
    "custom": "Not covered: the operations of your script are unknown before it runs.",
}
"""Reasons why nothing is predicted, one sentence each."""

MAKERS = {
    "mps": ("mps", "apple", "m1", "m2", "m3", "m4"),
    "amd": ("amd", "rocm", "mi1", "mi2", "mi3", "radeon", "rx"),
    "xpu": ("xpu", "intel", "arc", "max1"),
}
"""Prefixes of names of devices that are not covered."""

CPU_ERROR = 1.05
"""Minimum factor by which the CPU's time may vary from one run to the next."""

BETWEEN_SIZES = 1.2
"""Minimum factor by which an interpolated time between two measured sizes may be wrong."""

LOADED_S, SMALL_FLOPS = 40e-6, 1e5
"""Seconds per operation of a small model above which a CPU was probably loaded; and maximum arithmetic operations per
dispatched operation of a small model.
"""

NO_MATTER = 1.1
"""Speedup up to which a GPU would not matter."""

WIDEST = 20.0
"""Ratio of the ends of a range above which it is not informative."""

CONTEXT_BYTES, MEMORY_SHARE = 600e6, 0.9
"""Memory in bytes of a CUDA context and its libraries, and share of a card's memory that a training may fill."""

LOOSE_SHARE = 0.1
"""Share of arithmetic in operations larger than any timed operation, above which nothing is predicted."""

RUN_FIELDS = ("epochs", "learning_rate", "seed", "shuffle", "samples")
"""Fields of a training that do not change the time of its step."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """A range from `low` to `high`."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Geometric mean; half of `high` if the range begins at 0."""
        return math.sqrt(self.low * self.high) if self.low > 0 else self.high / 2

    def __add__(self, other: "Range") -> "Range":
        return Range(low=self.low + other.low, high=self.high + other.high)

    def scale(self, factor: float) -> "Range":
        """Return both ends times a factor."""
        return Range(low=self.low * factor, high=self.high * factor)


NOTHING = Range(low=0.0, high=0.0)


@dataclass(frozen=True, kw_only=True)
class CpuStep:
    """The CPU's measured step of one training; seconds.

    Attributes:
        step_s: median; the true value may be anywhere in `span`.
        loader_s: time of making the batch; None if it was not timed separately.
        obstacle: reason why nothing can be predicted from the step, in a sentence; empty if there is none.
        measured: whether this size was timed, instead of interpolated between two timed sizes.
        small: whether launches dominate the step: little arithmetic, and no loader.
    """

    step_s: float
    span: Range
    loader_s: float | None = None
    obstacle: str = ""
    measured: bool = True
    small: bool = False


StepKey = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class CpuSide:
    """CPU times of one machine that predictions need.

    Attributes:
        name: name of the processor.
        steps: steps by the fields that determine the time of a step.
        operation_s: shortest seconds per operation of the timed small models; None if no small model was timed.
    """

    name: str = ""
    steps: Mapping[StepKey, CpuStep] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    operation_s: float | None = None

    def find_step(self, point: Point) -> CpuStep | None:
        """Return the measured step of a training; None if it was not measured."""
        return self.steps.get(step_key(point))

    def interpolate_step(self, point: Point, axis: str) -> CpuStep | None:
        """Return the measured step, or interpolate between the two nearest measured sizes of an axis; else None."""
        if found := self.find_step(point):
            return found
        wanted, size = step_key(point, axis), getattr(point, axis)
        along = {getattr(one, axis): one for one in self.points if step_key(one, axis) == wanted}
        below = max((value for value in along if value < size), default=None)
        above = min((value for value in along if value > size), default=None)
        if below is None or above is None:
            return None
        ends = [self.steps[step_key(along[value])] for value in (below, above)]
        share = math.log(size / below) / math.log(above / below)
        step_s = ends[0].step_s ** (1 - share) * ends[1].step_s ** share
        loaders = [end.loader_s for end in ends]
        known = None if None in loaders else loaders[0] * (1 - share) + loaders[1] * share  # type: ignore[operator]
        return CpuStep(
            step_s=step_s,
            span=Range(low=step_s / BETWEEN_SIZES, high=step_s * BETWEEN_SIZES),
            loader_s=known,
            obstacle=next((end.obstacle for end in ends if end.obstacle), ""),
            measured=False,
        )


def step_key(point: Point, *without: str) -> StepKey:
    """Return the fields that determine the time of a training's step, except some."""
    left = {*RUN_FIELDS, *without}
    return tuple(getattr(point, name) for name in TRAINING if name not in left)


def read_cpu(rows: Iterable[Trial]) -> CpuSide:
    """Return the CPU times from a machine's rows: for each training, those of the fastest timed thread count.

    Raises:
        NotComparable: the rows come from several machines.
    """
    plain = [row for row in rows if row.device_kind == "cpu" and not row.training and row.block_steps]
    plain = [row for row in plain if Lane.from_row(row) == PLAIN and not Point.from_row(row).is_fit]
    if len({row.machine_id for row in plain}) > 1:
        raise NotComparable("The rows come from several machines. Give the rows of one machine.")
    groups: dict[StepKey, list[Trial]] = {}
    for row in plain:
        groups.setdefault(step_key(Point.from_row(row)), []).append(row)
    steps = {key: _summarize_cpu(group) for key, group in groups.items()}
    points = {key: Point.from_row(group[0]) for key, group in groups.items()}
    each = [
        step.step_s / launches
        for key, step in steps.items()
        if step.small and (launches := count_host_launches(points[key]))
    ]
    return CpuSide(
        name=plain[0].cpu_name if plain else "",
        steps=steps,
        points=tuple(points.values()),
        operation_s=min(each, default=None),
    )


def _summarize_cpu(rows: Sequence[Trial]) -> CpuStep:
    best = min(rows, key=lambda row: statistics.median(row.step_s))
    step_s = statistics.median(best.step_s)
    low, high = median_interval(best.step_s) or (step_s, step_s)
    obstacle = ""
    if best.cores_usable > 1 and not any(row.threads > 1 or len(row.threads_tried) > 1 for row in rows):
        obstacle = "Only one CPU thread was measured. Measure the CPU with all its threads."
    elif (busy := interference.row_interference([best])).many:
        obstacle = f"The CPU was busy while it was measured: {busy.description}. Measure it again."
    return CpuStep(
        step_s=step_s,
        span=Range(low=min(low, step_s / CPU_ERROR), high=max(high, step_s * CPU_ERROR)),
        loader_s=_loader_seconds(best),
        obstacle=obstacle,
        small=is_small(Point.from_row(best)),
    )


@functools.lru_cache(maxsize=512)  # a curve requests each size several times
def describe_training(point: Point) -> StepWork:
    """Return the work of a training's step; several small resident batches are indexed at once, at no cost."""
    batch_bytes = point.batch_size * (point.network.sample_bytes + models.INDEX_BYTES)
    gathers = point.data_path == "resident" and 2 * batch_bytes > GATHERED_BYTES
    return describe_step(point.network, point.batch_size, gathers=gathers)


def _loader_seconds(row: Trial) -> float | None:
    """Return the seconds of a step that its loader takes, by its share of the step breakdown; None if not timed."""
    parts = causes.step_parts(row) if row.breakdown_loader_s else None
    return parts.share("loader") * statistics.median(row.step_s) if parts else None


def count_host_launches(point: Point) -> int:
    """Return the number of operations that a CPU dispatches in a step; 0 if it depends on the device."""
    if any(layer.parameters and not layer.launches for layer in point.network.layers):
        return 0
    return count_launches(point.network, foreach=False)


def is_small(point: Point) -> bool:
    """Return whether launches dominate a CPU's step: little arithmetic in each operation, and no loader."""
    if point.data_path in LOADER_PATHS:
        return False
    return 0 < point.network.flops_per_step(point.batch_size) <= SMALL_FLOPS * count_host_launches(point)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Prediction of a training on a GPU that is not available.

    Attributes:
        card: key of the GPU, or the requested name.
        speedup: CPU seconds over GPU seconds.
        step_s: seconds of a step on the GPU.
        cpu_s: the CPU's median.
        parts: seconds by `PARTS`.
        bound: the part that takes longest.
        most: largest speedup that any GPU can reach; None if the loader was not timed.
        reasons: reasons why it is inconclusive, and measurements that would decide it, one sentence each.
        sentence: the answer in words.
    """

    card: str
    answer: Answer
    sentence: str
    speedup: Range | None = None
    step_s: Range | None = None
    cpu_s: float | None = None
    parts: Mapping[str, Range] = field(default_factory=dict)
    bound: Bound = ""
    most: float | None = None
    reasons: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as data for JSON."""
        return dataclasses.asdict(self)


def predict(
    point: Point,
    card: Card | str,
    cpu: CpuSide | None = None,
    *,
    lane: Lane = PLAIN,
    record: Mapping[str, Comparison] | None = None,
) -> Prediction:
    """Predict whether a GPU that is not available would be faster than this CPU for a training.

    Args:
        point: the training.
        card: GPU, or its key or name; `mps`, `amd` and similar names give the answer that they are not covered.
        cpu: CPU times of the machine; without them, only the GPU's step is predicted.
        lane: variant of the training.
        record: later runs on GPUs, by key, as `compare_runs` returns them.

    Raises:
        InvalidValue: no GPU has this name.
    """
    return predict_step(point, card, cpu, cpu.find_step(point) if cpu else None, lane=lane, record=record)


def predict_step(
    point: Point,
    card: Card | str,
    cpu: CpuSide | None,
    step: CpuStep | None,
    *,
    lane: Lane = PLAIN,
    record: Mapping[str, Comparison] | None = None,
) -> Prediction:
    """Predict as `predict` does, with a step of the CPU that may lie between two measured sizes."""
    if isinstance(card, str):
        if maker := _uncovered_maker(card):
            return Prediction(card=card, answer="not_covered", sentence=NOT_COVERED[maker])
        card = cards.find_card(card)
    if reason := _why_not_covered(point, lane):
        return _decline(card, "not_covered", NOT_COVERED[reason], step)
    if record and card.key in record and record[card.key].is_off:
        return _decline(card, "not_covered", record[card.key].sentence, step)
    constants, work = cards.load_constants(), describe_training(point)
    if work.uncovered:
        return _decline(card, "not_covered", NOT_COVERED["recurrent"], step)
    if reason := _why_no_room(point, card, work):
        return _decline(card, "cannot_tell", reason, step)
    parts = _predict_parts(point, card, work, constants, cpu, step)
    return _answer(point, card, parts, cpu, step)


def _uncovered_maker(name: str) -> str:
    folded = "".join(letter for letter in name.lower() if letter.isalnum())
    return next((maker for maker, begins in MAKERS.items() if folded.startswith(begins)), "")


def _why_not_covered(point: Point, lane: Lane) -> str:
    """Return the key of `NOT_COVERED` for a training that is not covered; empty if it is covered."""
    if point.training:
        return "custom"
    if point.is_fit:
        return "boosting"
    if point.dtype != "float32":
        return "float64"
    if lane.precision != "fp32":
        return "precision"
    return "" if lane == PLAIN else "compile"


def _why_no_room(point: Point, card: Card, work: StepWork) -> str:
    """Return why the GPU's memory or the size of the operations prevents a prediction; empty if neither does."""
    network = point.network
    held = network.memory_bytes(point.batch_size) + CONTEXT_BYTES
    held += point.samples * network.sample_bytes if point.data_path == "resident" else 0
    if held > MEMORY_SHARE * card.memory_gb * 1e9:
        return f"The training needs about {held / 1e9:.1f} GB, and {card.title} has {card.memory_gb:g} GB."
    whole = sum(one.flops * one.count for one in work.operations)
    largest = cards.load_constants().largest_flops
    large = sum(one.flops * one.count for one in work.operations if one.flops > largest.get(one.kind, 0.0))
    if large > LOOSE_SHARE * whole:
        return "Its largest operations are larger than any that was timed. Measure it on the card."
    return ""


def _predict_parts(
    point: Point, card: Card, work: StepWork, constants: Constants, cpu: CpuSide | None, step: CpuStep | None
) -> dict[str, Range]:
    factor = cards.band_factor(card, constants)
    computes = cards.device_seconds(Work.from_operations(work.operations), card, constants)
    updates = cards.device_seconds(Work.from_operations([work.update]), card, constants)
    least, most = constants.launch_s
    launches = Range(low=least * work.launches, high=most * work.launches)
    if own_s := _own_launch_seconds(point, work, cpu, step):  # the GPU's host may be like this one, or like others
        low, high = (ratio * own_s for ratio in constants.host_ratio)
        launches = Range(low=min(launches.low, low), high=max(launches.high, high))
    copied = 0.0
    if point.data_path != "resident":
        copied = point.batch_size * (point.network.sample_bytes + models.INDEX_BYTES) / 1e9
    slow, fast = constants.link_gb_s
    return {
        "loader": _loader_range(point, step),
        # 10⁹ bytes per second; samples and labels are launched separately
        "copy": Range(low=copied / fast, high=copied / slow + (2 * most if copied else 0.0)),
        "launches": launches,
        "arithmetic": Range(low=computes / factor, high=computes * factor),
        "update": Range(low=updates / factor, high=updates * factor),
    }


def _own_launch_seconds(point: Point, work: StepWork, cpu: CpuSide | None, step: CpuStep | None) -> float:
    """Return the seconds that this machine's CPU takes to dispatch the step's operations.

    The result is 0 if no small model was timed.
    """
    if step and step.small and step.measured and not step.obstacle:
        return step.step_s
    return (cpu.operation_s or 0.0) * (count_host_launches(point) or work.launches) if cpu else 0.0


def _loader_range(point: Point, step: CpuStep | None) -> Range:
    """Return the seconds of making the batch; with workers, they may overlap any part of the rest of the CPU's step."""
    if point.data_path == "resident" or step is None or step.loader_s is None:
        return NOTHING
    if point.loader_workers:
        return Range(low=step.loader_s, high=max(step.loader_s, step.step_s))
    return Range(low=step.loader_s / CPU_ERROR, high=step.loader_s * CPU_ERROR)


def _answer(point: Point, card: Card, parts: dict[str, Range], cpu: CpuSide | None, step: CpuStep | None) -> Prediction:
    before = parts["loader"] + parts["copy"]
    computes = parts["arithmetic"] + parts["update"]
    step_s = Range(
        low=before.low + max(parts["launches"].low, computes.low),
        high=before.high + max(parts["launches"].high, computes.high),
    )
    bound = _find_bound(parts, computes)
    if step is None:
        reason = "The CPU was not measured at this size. Measure it to compare."
        said = f"{card.title}: a step is predicted to take {_duration_range(step_s)}. {reason}"
        found = Prediction(card=card.key, answer="cannot_tell", sentence=said, step_s=step_s, parts=parts, bound=bound)
        return dataclasses.replace(found, reasons=(reason,))
    most = _most_speedup(point, parts, step)
    low, high = step.span.low / step_s.high, step.span.high / step_s.low
    speedup = Range(low=low, high=max(low, min(high, most)) if most else high)  # both need the same batch
    known = Prediction(
        card=card.key,
        answer="cannot_tell",
        sentence="",
        speedup=speedup,
        step_s=step_s,
        cpu_s=step.step_s,
        parts=parts,
        bound=bound,
        most=most,
    )
    obstacle = step.obstacle or _why_loaded(cpu) or _why_loader_unknown(point, step)
    if obstacle:
        said = f"{card.title}: inconclusive. {obstacle}"
        return dataclasses.replace(known, speedup=None, sentence=said, reasons=(obstacle,))
    return _decide(known, card, speedup)


def _why_loaded(cpu: CpuSide | None) -> str:
    if cpu is None or not cpu.operation_s or cpu.operation_s <= LOADED_S:
        return ""
    each = units.format_duration(cpu.operation_s, 2)
    return f"The CPU takes {each} for each operation of a small model, so it was probably busy. Measure it again."


def _why_loader_unknown(point: Point, step: CpuStep) -> str:
    if point.data_path == "resident" or step.loader_s is not None:
        return ""
    return "How long the loader takes for a batch was not measured. Measure the CPU again."


def _most_speedup(point: Point, parts: Mapping[str, Range], step: CpuStep) -> float | None:
    """Return the largest speedup that any GPU can reach, because its batch must be made and copied too."""
    if point.data_path == "resident" or not step.loader_s or point.loader_workers:
        return None
    return max(1.0, step.step_s / (step.loader_s + parts["copy"].low))


def _find_bound(parts: Mapping[str, Range], computes: Range) -> Bound:
    whole: dict[Bound, float] = {
        "loader": parts["loader"].middle,
        "copy": parts["copy"].middle,
        "launches": parts["launches"].middle,
        "arithmetic": computes.middle,
    }
    return max(whole, key=lambda name: whole[name])


def _decide(known: Prediction, card: Card, speedup: Range) -> Prediction:
    """Return the prediction with its answer: one of three words, or that no GPU would matter."""
    most = known.most or math.inf
    ends = f"{units.format_rough_ratio(speedup.low)} to {units.format_rough_ratio(speedup.high)}"
    times = f"predicted {ends} as fast as this CPU"
    if speedup.high < 1:
        return _say(known, "cpu_faster", f"This CPU is faster than {card.title}, which is {times}.", card)
    if most < NO_MATTER:
        share = f"No GPU can help more than {units.format_significant(most, 3)}×, as the loader takes most of the step"
        return _say(known, "no_matter", f"{share}. {card.title} is {times}.", card)
    if speedup.high > WIDEST * speedup.low:
        reason = f"The range {ends} is too wide to be useful. Measure it on the card."
        return dataclasses.replace(known, sentence=f"{card.title}: inconclusive. {reason}", reasons=(reason,))
    if speedup.low > 1:
        return _say(known, "gpu_faster", f"{card.title} is {times}.", card)
    reason = _why_undecided(known)
    said = f"{card.title}: inconclusive without measuring, {times}. {reason}"
    return dataclasses.replace(known, sentence=said, reasons=(reason, CONFIDENCE[card.basis]))


def _why_undecided(known: Prediction) -> str:
    if known.bound == "launches":
        least, most = (units.format_duration(end, 2) for end in _ends(known.parts["launches"]))
        return (
            f"The host of that GPU launches the operations of a step in {least} to {most}; measuring a small model "
            "there, or a larger one here, decides."
        )
    return "A measurement on that card, or of a larger size, decides."


def _say(known: Prediction, answer: Answer, said: str, card: Card) -> Prediction:
    because = {
        "launches": "Launching its operations takes longest, so a more expensive card would not help.",
        "arithmetic": "Arithmetic takes longest on the GPU.",
        "copy": "Copying the batch to the GPU takes longest.",
        "loader": "" if answer == "no_matter" else "Making the batch takes longest.",
        "": "",
    }[known.bound]
    return dataclasses.replace(
        known, answer=answer, sentence=f"{said} {because}".strip(), reasons=(CONFIDENCE[card.basis],)
    )


def _decline(card: Card, answer: Answer, reason: str, step: CpuStep | None) -> Prediction:
    cpu_s = step.step_s if step else None
    return Prediction(card=card.key, answer=answer, sentence=f"{card.title}: {reason}", cpu_s=cpu_s, reasons=(reason,))


def _ends(span: Range) -> tuple[float, float]:
    return span.low, span.high


def _duration_range(span: Range) -> str:
    return " to ".join(units.format_duration(end, 2) for end in _ends(span))


def compare_run(baseline: Trial, challenger: Trial, measured: float | None) -> str:
    """Return the error of the prediction for a run on a card, in a sentence; empty if its card is not predicted.

    Args:
        baseline: row of the CPU, from which the prediction is computed.
        challenger: row of the GPU, of which only the card and the training are used.
        measured: measured speedup.
    """
    card = cards.card_of_device(challenger.device_name)
    if card is None or challenger.device_kind != "cuda" or baseline.device_kind != "cpu" or measured is None:
        return ""
    try:
        point, cpu = Point.from_row(challenger), read_cpu([baseline])
        made = predict(point, card, cpu, lane=Lane.from_row(challenger))
    except InvalidValue:  # a row of a version with more options
        return ""
    took = units.format_rough_ratio(measured)
    if made.answer == "not_covered":
        return f"No prediction to compare with. {made.reasons[0]}"
    if made.speedup is None:
        return f"Not predicted, measured {took}. {' '.join(made.reasons[:1])}"
    span = made.speedup
    low, high = (units.format_rough_ratio(end).removesuffix("×") for end in _ends(span))
    where = "inside" if span.low <= measured <= span.high else "outside"
    said = f"Predicted {units.format_rough_ratio(span.middle)} ({low} to {high}), measured {took}"
    return f"{said}: {where} the predicted range."


def compare_runs(rows: Iterable[Trial]) -> dict[str, Comparison]:
    """Compare real runs on GPUs with their predictions, by key of the GPU.

    As in a prediction for a visitor, the CPU rows of the same machine say how long its host takes for an operation.
    Rows of other precisions and of GPUs that are not offered are skipped.
    """
    rows, hosts, found = list(rows), dict[str, CpuSide](), dict[str, list[tuple[float, float, float]]]()
    for row in rows:
        card = cards.card_of_device(row.device_name)
        if card is None or row.device_kind != "cuda" or not row.block_steps or row.training or row.loader_workers:
            continue
        if row.machine_id not in hosts:
            hosts[row.machine_id] = read_cpu(one for one in rows if one.machine_id == row.machine_id)
        cpu, took = hosts[row.machine_id], statistics.median(row.step_s)
        with contextlib.suppress(InvalidValue):  # a row of a version with more options
            point = Point.from_row(row)
            # without a CPU row of this training, only the loader of the GPU's is used
            alone = CpuStep(step_s=took, span=Range(low=took, high=took), loader_s=_loader_seconds(row))
            made = predict_step(point, card, cpu, cpu.find_step(point) or alone, lane=Lane.from_row(row))
            if made.step_s is not None:
                found.setdefault(card.key, []).append((made.step_s.low, made.step_s.high, took))
    return {key: Comparison(runs=tuple(runs)) for key, runs in found.items()}
