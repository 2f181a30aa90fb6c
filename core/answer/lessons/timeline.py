"""Work over time: host and device while a clock runs, and a race of two devices over one training.

A timeline is data: a page plays it, and a report contains its sentence and its table. Nothing here measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ... import units
from ...errors import NotComparable
from ...question.experiment import display_name, inline_name
from ...question.lanes import capitalize_name
from ...results.exhibits import Clock, Exhibit
from ...results.schema import Trial
from . import outcomes
from .outcomes import Section, SectionTable

SIMULATED_STEPS = 5
SIMULATED_LAUNCH_S, SIMULATED_STEP_S = 2e-3, 10e-3
"""Times of the simulated device: seconds in which the host queues a step, and seconds in which the device
computes it.
"""

PLAY_S = 6.0
"""Duration of the playback of a trace, in seconds."""

RACE_S = 8.0
"""Approximate duration of a race for the slower device, in seconds, short enough for a lecture."""


UNTIMED_S = {
    1_000: (0.0161, 0.00338),
    5_000: (0.0361, 0.00265),
    10_000: (0.1128, 0.00188),
    50_000: (0.2743, 0.00310),
    100_000: (0.4405, 0.00308),
}
"""Samples → seconds per epoch on the CPU, and by a clock that doesn't wait for the GPU: `results/comparison` of
mmarkakis/pytorch-cpu-gpu-benchmarking, MIT licence, a laptop. An exhibit of that clock, never rows of a store."""

RACE_ORIGIN = "Each bar moves at the speed of its recorded blocks, in the order in which they were timed."
NO_WINNER = "This run has no winner: the order in which the bars finish is not a result."


@dataclass(frozen=True, kw_only=True)
class Span:
    """A piece of work: when it begins and ends, in seconds, and which part of its row it fills, 0 to 1."""

    start_s: float
    end_s: float
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class ClockMark:
    """A moment at which a clock is read.

    Attributes:
        is_answer: whether the mark reveals the answer of a lesson, so that it is hidden before the prediction.
    """

    at_s: float
    label: str
    is_answer: bool = False


@dataclass(frozen=True, kw_only=True)
class TimelineRow:
    """The work of the host or of one device.

    Attributes:
        kind: device kind, for its colour; `host` for the program that queues work.
        result: text at the end of the row once it is done; may be empty.
    """

    label: str
    kind: str
    spans: tuple[Span, ...]
    result: str = ""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Rows of work on one axis of time.

    Attributes:
        origin: source of the times, in a sentence; it states whether they are simulated.
        end_s: end of the last work, in seconds.
        speed: seconds of the timeline that pass in one second of the page; 1 is real time.
        question: description while the answer is hidden; `sentence` describes everything.
    """

    title: str
    origin: str
    rows: tuple[TimelineRow, ...]
    marks: tuple[ClockMark, ...] = ()
    end_s: float
    speed: float = 1.0
    question: str = ""
    sentence: str = ""


def simulate_clock() -> Timeline:
    """Return the trace of a device with a queue, for a few steps of made-up lengths."""
    queued_s, end_s = SIMULATED_STEPS * SIMULATED_LAUNCH_S, SIMULATED_LAUNCH_S + SIMULATED_STEPS * SIMULATED_STEP_S
    host = [(step * SIMULATED_LAUNCH_S, (step + 1) * SIMULATED_LAUNCH_S) for step in range(SIMULATED_STEPS)]
    begin_s = SIMULATED_LAUNCH_S
    device = [
        (begin_s + step * SIMULATED_STEP_S, begin_s + (step + 1) * SIMULATED_STEP_S) for step in range(SIMULATED_STEPS)
    ]
    lengths = f"{units.format_duration(SIMULATED_LAUNCH_S)} to queue a step, {units.format_duration(SIMULATED_STEP_S)}"
    return _build_trace(
        host,
        device,
        name="the device",
        kind="cuda",
        origin=f"Simulated, not measured: {SIMULATED_STEPS} steps on a delayed device ({lengths} to compute it).",
        readings=(queued_s, end_s),
    )


def simulate_loader() -> Timeline:
    """Return an epoch in which loader and network take turns of equal, made-up lengths."""
    turns = [(place, place + 1.0) for place in range(2 * SIMULATED_STEPS)]
    rows = (("Loader: reads and transforms samples", "host", turns[::2]), ("Network: trains", "cpu", turns[1::2]))
    end_s = float(2 * SIMULATED_STEPS)
    return Timeline(
        title="An epoch, batch by batch",
        origin="Simulated, not measured: both parts have the same length. Predict their real shares.",
        rows=tuple(_make_row(label, kind, pieces, end_s) for label, kind, pieces in rows),
        end_s=end_s,
        speed=end_s / PLAY_S,
        question="The network waits while the loader makes a batch. Which of the two takes most of an epoch?",
    )


def simulate_launches() -> Timeline:
    """Return a step of a small batch, launch by launch, and an empty row for the large batch."""
    count = 3 * SIMULATED_STEPS
    host = [(place, place + 0.9) for place in range(count)]
    device = [(place + 0.9, place + 1.1) for place in range(count)]
    end_s = count + 0.2
    rows = (("Host: launches each operation", "host", host), ("Device: computes a small batch", "cuda", device))
    return Timeline(
        title="One step, operation by operation",
        origin="Simulated, not measured: how long a launch and its arithmetic take differs from device to device.",
        rows=(
            *(_make_row(label, kind, pieces, end_s) for label, kind, pieces in rows),
            TimelineRow(label="Device: computes the large batch (covered)", kind="cuda", spans=()),
        ),
        end_s=end_s,
        speed=end_s / PLAY_S,
        question="The host launches one operation after the other. How much longer is the step of the large batch?",
    )


def trace_clock(exhibit: Exhibit, note: str = "") -> Timeline | None:
    """Return the trace of host and device while the clocks of an exhibit ran.

    Args:
        exhibit: exhibit of the clock lesson.
        note: where it was recorded; empty for this machine.

    Returns:
        None if the exhibit shows no asynchronous device.
    """
    last = exhibit.participants[-1]
    if not isinstance(exhibit.content, Clock) or last.kind == "cpu":
        return None
    readings = {entry.variant.name: entry for entry in outcomes.compare_clocks(exhibit.content, last.contender)}
    short = readings.get("no_drain")
    if short is None or short.within or short.against_ours >= 1:
        return None
    end_s = readings["ours"].epoch_s
    return _build_trace(
        [(0.0, short.epoch_s)],
        [(0.0, end_s)],
        name=inline_name(last.contender),
        kind=last.kind,
        origin=note or f"Measured here: one epoch on {last.device_name}, medians of both clocks.",
        readings=(short.epoch_s, end_s),
    )


def race_devices(trials: Sequence[Trial], *, has_winner: bool = True) -> Timeline:
    """Build the race of two devices that train the same steps, each at its recorded speed, in real time.

    Args:
        trials: rows of one run; the first and the last with timed blocks take part.
        has_winner: whether the run has a verdict; without one the race states that its order is not a result.

    Raises:
        NotComparable: fewer than two rows have timed blocks.
    """
    timed = [trial for trial in trials if trial.step_s]
    if len(timed) < 2:
        raise NotComparable("A race needs two devices with timed blocks.")
    pair = (timed[0], timed[-1])
    slowest_s = max(sum(trial.step_s) / len(trial.step_s) for trial in pair)
    steps = max(1, round(RACE_S / slowest_s))
    rows = tuple(_race_row(trial, steps) for trial in pair)
    ends = [row.spans[-1].end_s for row in rows]
    count = units.format_quantity(steps, "step")
    done = [
        f"{display_name(trial.contender)} {units.format_duration(end_s)}"
        for trial, end_s in zip(pair, ends, strict=True)
    ]
    return Timeline(
        title=f"{count} in real time",
        origin=RACE_ORIGIN if has_winner else f"{RACE_ORIGIN} {NO_WINNER}",
        rows=rows,
        end_s=max(ends),
        sentence=f"{count[:1].upper()}{count[1:]}: {', '.join(done)}.",
    )


def trace_section(trace: Timeline) -> Section:
    """Return the trace for a report: its sentence, and the moment at which each clock is read."""
    rows = tuple((mark.label, units.format_duration(mark.at_s)) for mark in trace.marks)
    table = SectionTable(title="When each clock is read", header=("Clock", "Reading"), rows=rows)
    return Section(title=trace.title, sentences=(trace.sentence,), tables=(table,), notes=(trace.origin,))


def untimed_section() -> Section:
    """Return the section on a published benchmark whose clock does not wait: its figures, and the signs of it."""
    fewest, most = (UNTIMED_S[count] for count in (min(UNTIMED_S), max(UNTIMED_S)))
    said = (
        "mmarkakis/pytorch-cpu-gpu-benchmarking stops its clock after the last step of a loop, without waiting for the "
        "GPU. The time per epoch is therefore how long the host takes to queue the work.",
        f"{max(UNTIMED_S) // min(UNTIMED_S)} times as many samples take {units.format_ratio(most[0] / fewest[0])} as "
        f"long on the CPU. The clock of the GPU hardly changes: {units.format_duration(fewest[1])} and "
        f"{units.format_duration(most[1])}.",
    )
    rows = tuple(
        (units.format_count(count), *(units.format_duration(seconds) for seconds in both))
        for count, both in UNTIMED_S.items()
    )
    return Section(
        title="Published: a clock that does not wait",
        sentences=said,
        tables=(SectionTable(title="Time per epoch", header=("Samples", "CPU", "GPU, not synchronized"), rows=rows),),
        notes=(
            "Published on 2024-11-07 under the MIT licence, from one laptop; neither device is named. How long the GPU "
            "worked is unknown, so these figures are not counted as results.",
        ),
    )


def _build_trace(
    host: Sequence[tuple[float, float]],
    device: Sequence[tuple[float, float]],
    *,
    name: str,
    kind: str,
    origin: str,
    readings: tuple[float, float],
) -> Timeline:
    early_s, end_s = readings
    early, whole = units.format_duration(early_s), units.format_duration(end_s)
    rows = [("Host: queues the work", "host", host), (f"{capitalize_name(name)}: computes", kind, device)]
    return Timeline(
        title="Two clocks, one training",
        origin=origin,
        rows=tuple(_make_row(label, of, pieces, end_s) for label, of, pieces in rows),
        marks=(
            ClockMark(at_s=0.0, label="Both clocks start"),
            ClockMark(at_s=early_s, label="The clock that does not wait stops", is_answer=True),
            ClockMark(at_s=end_s, label="The clock that waits stops", is_answer=True),
        ),
        end_s=end_s,
        speed=end_s / PLAY_S,
        question=f"The host queues work for {name} and goes on; {name} computes later. When does each clock stop?",
        sentence=f"The clock that does not wait for {name} stops at {early}, when the host has queued the work. "
        f"The work is done at {whole}, where the clock that waits stops.",
    )


def _make_row(label: str, kind: str, pieces: Sequence[tuple[float, float]], end_s: float) -> TimelineRow:
    """Return a row on an axis of time that ends at `end_s`."""
    spans = (Span(start_s=begin, end_s=end, start=begin / end_s, end=end / end_s) for begin, end in pieces)
    return TimelineRow(label=label, kind=kind, spans=tuple(spans))


def _race_row(trial: Trial, steps: int) -> TimelineRow:
    """Build the row of one device: a piece for each block, with an equal share of the steps."""
    share, spans, now_s = 1 / len(trial.step_s), [], 0.0
    for number, step_s in enumerate(trial.step_s):
        end_s = now_s + step_s * steps * share
        spans.append(Span(start_s=now_s, end_s=end_s, start=number * share, end=(number + 1) * share))
        now_s = end_s
    return TimelineRow(
        label=display_name(trial.contender),
        kind=trial.device_kind,
        spans=tuple(spans),
        result=units.format_duration(now_s),
    )
