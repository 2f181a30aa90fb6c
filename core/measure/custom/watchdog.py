"""Supervision of a running custom script: its present line, reports of long steps, and a time limit.

One thread serves the whole process and finds the line by sampling the stack. It only reads a clock four times a second
until the script has run for a second without a break, so it has no cost within timed blocks.
"""

import contextlib
import re
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from ... import units
from ...errors import OutOfTime
from ...question.custom import ACTIVITIES

POLL_S, SAMPLE_S = 0.25, 0.05
"""Seconds between two readings of the clock, and between two samples of the stack."""

SAMPLED_AFTER_S, REPORTED_AFTER_S = 1.0, 5.0
"""Seconds without a break after which a script is sampled, and after which its line is reported."""

GRACE_S = 5.0
"""Seconds that a script has to end after an interrupt, before its process is ended."""

CAN_INTERRUPT = hasattr(signal, "pthread_kill")
"""Whether a thread can be interrupted on this system; not on Windows."""

FAST_SAMPLE_S = 0.0005
"""Seconds between two samples of the stack if steps take milliseconds."""

SHOWN_BY: tuple[tuple[str, str], ...] = (
    ("compilation", r"torch/(_inductor/|_dynamo/convert_frame\.py)"),
    ("a checkpoint", r"torch/serialization\.py|:(save|save_\w*|\w*checkpoint\w*)$"),
    ("a download", r"urllib/request\.py|http/client\.py|/requests/|/huggingface_hub/|torch/hub\.py"),
    ("an evaluation", r":(\w*(eval|valid|estimate_loss|test_)\w*|test|generate|sample)$"),
)
"""Activity that often takes long → pattern that identifies it: the file or, after a colon, the function of a frame."""


_CALLER = str(Path(__file__).with_name("user_code.py"))


@dataclass(frozen=True)
class Place:
    """Present place of a script.

    Attributes:
        line: file, line and function of its innermost frame, as `train.py:12 in step`; empty if it has none.
        activity: key of `core.question.custom.ACTIVITIES`; empty if unknown.
    """

    line: str = ""
    activity: str = ""

    def __str__(self) -> str:
        return f"{self.line}, {self.activity}" if self.activity else self.line


def find_place(thread: int, owns: Callable[[str], bool]) -> Place:
    """Return the present place of a thread.

    Args:
        thread: number of the thread.
        owns: returns whether a file belongs to the script.
    """
    frame: FrameType | None = sys._current_frames().get(thread)
    line, activity, names = "", "", set[str]()
    while frame is not None and frame.f_code.co_filename != _CALLER:  # beyond it nothing is the script's
        code = frame.f_code
        if owns(code.co_filename):
            line = line or f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
            names.add(f":{code.co_name}")
        elif not line:
            names.add(code.co_filename.replace("\\", "/"))
        frame = frame.f_back
    if line:
        activity = next((name for name, shown in SHOWN_BY if any(re.search(shown, each) for each in names)), "")
    return Place(line, activity)


class Overtime(BaseException):
    """Signals that the time of a script is over; raised within the script."""


@dataclass
class Limits:
    """Time limit of a script, and functions that handle long calls.

    Attributes:
        seconds: maximum seconds of all calls.
        report: called from another thread with the present line during a long call.
        give_up: ends this process with a sentence if the script cannot be interrupted.
    """

    seconds: float = float("inf")
    report: Callable[[str], None] = lambda _: None
    give_up: Callable[[str], None] | None = None


@dataclass
class Stopwatch:
    """The time of one script in this process, and where it spent its present or last call.

    Attributes:
        owns: returns whether a file belongs to the script.
        limits: time limits of the script.
        stage: present stage for display, such as "the first step".
        spent_s: seconds of all finished calls.
        places: samples by stage.
    """

    owns: Callable[[str], bool]
    limits: Limits
    stage: str = "importing the script"
    spent_s: float = 0.0
    places: dict[str, Counter[Place]] = field(default_factory=dict)
    _entered: float | None = None
    _depth: int = 0
    _reported: float = 0.0
    _interrupted: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: int = field(default_factory=threading.get_ident)

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Time a call of the script.

        Raises:
            OutOfTime: the time was over before, or ran out in the call.
        """
        if self._depth:
            yield
            return
        if self.spent_s >= self.limits.seconds:
            raise self.out_of_time()
        self._begin()
        try:
            yield
        except Overtime:
            raise self.out_of_time() from None
        finally:
            self._end()
        if self._interrupted is not None and self.spent_s >= self.limits.seconds:  # it took no notice
            raise self.out_of_time()

    def _begin(self) -> None:
        self._depth, self._interrupted = 1, None
        self._entered = time.monotonic()
        _WATCHDOG.watch(self)

    def _end(self) -> None:
        self._depth = 0
        with self._lock:  # what is being reported is complete
            if self._entered is not None:
                self.spent_s += time.monotonic() - self._entered
                self._entered = None
        _WATCHDOG.watch(None)

    @property
    def is_running(self) -> bool:
        """Whether the script is running."""
        return self._depth > 0

    def find_longest_place(self) -> Place:
        """Return the place where most of the present stage was spent; empty if its calls were too short for samples."""
        samples = self.places.get(self.stage)
        return samples.most_common(1)[0][0] if samples else Place()

    def out_of_time(self) -> OutOfTime:
        """Return the error with the place where the time was spent."""
        place, limit = self.find_longest_place(), units.format_duration(self.limits.seconds)
        where = f"; most of it was spent at {place}" if place.line else ""
        advice = ACTIVITIES.get(place.activity, "Allow more time, or leave out slow parts.")
        return OutOfTime(f"the script reached its limit of {limit} in {self.stage}{where}", advice)

    def look(self, now: float) -> bool:
        """Sample the stack and report if due; return whether to check again soon."""
        with self._lock:
            if self._entered is None:
                return False
            lasted_s = now - self._entered
            if self.spent_s + lasted_s >= self.limits.seconds:
                self._interrupt(now)
            if lasted_s < SAMPLED_AFTER_S:
                return False
            self.places.setdefault(self.stage, Counter())[find_place(self._thread, self.owns)] += 1
            if lasted_s >= REPORTED_AFTER_S and now - self._reported >= 1:
                self._reported = now
                at = find_place(self._thread, self.owns)
                where = f"; it is at {at}" if at.line else ""
                self.limits.report(f"{self.stage} has run for {units.format_duration(lasted_s)}{where}")
            return True

    def _interrupt(self, now: float) -> None:
        """Interrupt the script, repeatedly if it continues; end the process if that does not help in time."""
        if self._interrupted is None:
            self._interrupted = now
        if now - self._interrupted >= GRACE_S and self.limits.give_up is not None:
            self.limits.give_up(str(self.out_of_time()))
        if CAN_INTERRUPT and signal.getsignal(signal.SIGUSR2) == _WATCHDOG.on_signal:
            signal.pthread_kill(self._thread, signal.SIGUSR2)

    def raise_if_over(self) -> None:
        """Raise an error within the script, if it is running and its time is over."""
        if self._depth and self._interrupted is not None:
            raise Overtime


class Watchdog:
    """The thread that supervises the running script."""

    def __init__(self) -> None:
        self._watched: Stopwatch | None = None
        self._thread: threading.Thread | None = None

    def watch(self, stopwatch: Stopwatch | None) -> None:
        """Supervise a script from now on; None for no script."""
        self._watched = stopwatch
        if stopwatch is None:
            return
        if CAN_INTERRUPT and signal.getsignal(signal.SIGUSR2) != self.on_signal:
            with contextlib.suppress(ValueError):  # it is not the main thread, whose script is ended with its process
                signal.signal(signal.SIGUSR2, self.on_signal)
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._look, name="crossover-watchdog", daemon=True)
        self._thread.start()

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._watched is not None:
            self._watched.raise_if_over()

    def _look(self) -> None:
        while True:
            watched = self._watched
            is_sampling = watched is not None and watched.look(time.monotonic())
            time.sleep(SAMPLE_S if is_sampling else POLL_S)


_WATCHDOG = Watchdog()


LONG, FEWEST_SAMPLES, ONE_LINE = 3, 5, 0.5
"""Ratio to the usual step above which a step is long; minimum samples of long steps; minimum share of them at one line.
"""


def find_long_line(samples: Sequence[tuple[int, str]], times_s: Sequence[float]) -> str:
    """Return the line with most samples of long steps but few of usual steps; empty if there is none.

    Args:
        samples: pairs of the number of a step and its line.
        times_s: seconds of each step.
    """
    usual_s = statistics.median(times_s) if times_s else 0.0
    long, usual = Counter[str](), Counter[str]()
    for number, line in samples:
        if number < len(times_s):
            (long if times_s[number] > LONG * usual_s else usual)[line] += 1
    if long.total() < FEWEST_SAMPLES:
        return ""
    line, count = long.most_common(1)[0]
    share = count / long.total()
    return line if share >= ONE_LINE and usual[line] <= share / 2 * usual.total() else ""


class LineSampler(threading.Thread):
    """Context that samples the line of a script in each step.

    Attributes:
        step: number of the present step.
        samples: pairs of step and place.
    """

    def __init__(self, owns: Callable[[str], bool]) -> None:
        super().__init__(name="crossover-lines", daemon=True)
        self.step, self.samples = 0, list[tuple[int, str]]()
        self._owns, self._sampled, self._ended = owns, threading.get_ident(), threading.Event()
        self._interval_s = sys.getswitchinterval()

    def __enter__(self) -> "LineSampler":
        sys.setswitchinterval(FAST_SAMPLE_S)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        sys.setswitchinterval(self._interval_s)

    def run(self) -> None:
        """Sample until the context ends."""
        while not self._ended.wait(FAST_SAMPLE_S):
            number, place = self.step, find_place(self._sampled, self._owns)
            if place.line:
                self.samples.append((number, str(place)))
