"""The question of a class: one training, or a sweep of its axes, with everything fixed except the devices.

All students measure the same question on their own hardware. Rows of any other training are not pooled, for a reason
that this module states.
"""

import dataclasses
import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ..errors import InvalidValue
from ..question import describe, policy, presets
from ..question.experiment import PROTOCOL_VERSION, Contender, Experiment, Point
from ..question.fields import SIZE_AXES, TRAINING
from ..question.lanes import PLAIN as PLAIN_LANE
from ..question.sweep import Axis, Sweep, size_on_axis
from ..results.schema import Trial

ANYBODY = (Contender(), Contender(threads=1))
"""Placeholder contenders of a question before its devices are chosen."""

NEVER = "never"
"""Prediction that the challenger is faster at no size."""

BASELINE, CHALLENGER, SAME = "baseline", "challenger", "same"
WINNERS: dict[str, str] = {
    CHALLENGER: "all CPU threads",
    BASELINE: "one CPU thread",
    SAME: "about the same, within 10 %",
}
"""Answers that predict the faster device, with their texts for machines without a GPU."""

WINNERS_WITH_GPU = WINNERS | {CHALLENGER: "the GPU", BASELINE: "the CPU"}
"""Answers that predict the faster device, with their texts for machines with a GPU."""

PLAIN = {"protocol_version": PROTOCOL_VERSION, "precision": "fp32", "execution": "eager", "drained": True}
"""Columns on how a row was measured, with the required values; rows with other values are not pooled."""


RUNS_A_POINT = 10
"""Maximum runs of one training in a file; repeated measurements give more than one."""

CONTENDER_LENGTH = 60
"""Maximum characters of a contender; the longest valid one, with all its variants, is shorter."""


@dataclass(frozen=True, kw_only=True)
class ClassQuestion:
    """The question of a class with the contenders `ANYBODY`, its title, and its command-line options."""

    title: str
    question: Experiment | Sweep
    words: str

    def __post_init__(self) -> None:
        if self.question.point.training:
            raise InvalidValue(
                "training", self.question.point.training, "a built-in one: a class does not run custom scripts"
            )

    @classmethod
    def from_preset(cls, name: str) -> Self:
        """Return the question of a tutorial at the scale of a class.

        Raises InvalidValue if there is no such tutorial.
        """
        preset = presets.preset(name)
        return cls(
            title=preset.title,
            question=preset.build_question("class", ANYBODY),
            words=describe.format_options({"preset": name}),
        )

    @property
    def axis(self) -> Axis | None:
        """The size axis on which a crossover is searched; None for a single training."""
        if not isinstance(self.question, Sweep):
            return None
        return next((axis for axis in self.question.axes if axis.name in SIZE_AXES), None)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """Every training of the question."""
        return policy.question_points(self.question)

    @property
    def most_runs(self) -> int:
        """Maximum runs in one file."""
        return RUNS_A_POINT * len(self.points)

    @property
    def places(self) -> tuple[float, ...]:
        """Sizes from which the challenger can be predicted to win, ascending; empty for one training."""
        axis = self.axis
        return tuple(sorted({size_on_axis(point, axis.name) for point in self.points})) if axis else ()

    @property
    def dealt_sizes(self) -> tuple[float, ...]:
        """Sizes that can be distributed among students of one host; empty except for a sweep with one axis."""
        return self.places if isinstance(self.question, Sweep) and len(self.question.axes) == 1 else ()

    def deal_size(self, taken: Mapping[float, int], uncertain: Collection[float] = ()) -> float:
        """Return the size that the next student measures: a size with the fewest measurements, uncertain sizes first.

        Args:
            taken: size → number of students who have measured it or are assigned to it.
            uncertain: sizes at which neither device is clearly faster yet.

        Returns:
            One of `dealt_sizes`, in an order that covers the range early: both ends, then the middles of the gaps.
        """
        order = {size: place for place, size in enumerate(_spread(self.dealt_sizes))}
        return min(order, key=lambda size: (taken.get(size, 0), size not in uncertain, order[size]))

    def with_size(self, size: float, contenders: Sequence[Contender]) -> Experiment:
        """Return the training of one of `dealt_sizes` for given devices; raises InvalidValue as `with_contenders`."""
        sweep = self.with_contenders(contenders)
        if not isinstance(sweep, Sweep) or size not in self.dealt_sizes:
            raise InvalidValue("size", size, "one of the class's sizes")
        return sweep.experiment(next(point for point in sweep.points if sweep.size(point) == size))

    def with_contenders(self, contenders: Sequence[Contender]) -> Experiment | Sweep:
        """Return the question for given devices; raises InvalidValue unless there are two or more, all different."""
        if len(contenders) < 2:
            raise InvalidValue("devices", ", ".join(map(str, contenders)), "at least two different ones")
        return dataclasses.replace(self.question, contenders=tuple(contenders))

    def objection(self, trial: Trial) -> str:
        """Return why a row is not pooled, as a clause after "because"; empty if it is pooled."""
        for name, wanted in PLAIN.items():
            if getattr(trial, name) != wanted:
                return f"its {name} is {getattr(trial, name)!r:.40}, and the class measures with {wanted!r}"
        if reason := _misread(trial.contender):
            return reason
        if _settings(trial) in self._allowed:
            return ""
        for number, name in enumerate(TRAINING):
            allowed = {settings[number] for settings in self._allowed}
            if getattr(trial, name) not in allowed:
                shown = ", ".join(f"{value}" for value in sorted(allowed, key=str)[:8])
                return f"its {name} is {getattr(trial, name)!r:.40}, and the class measures {shown}"
        return "it combines settings that the class does not combine"

    @functools.cached_property
    def _allowed(self) -> frozenset[tuple[object, ...]]:
        return frozenset(map(_settings, self.points))

    def to_json(self) -> dict[str, Any]:
        """Return data for a JSON file."""
        kind = "sweep" if isinstance(self.question, Sweep) else "experiment"
        return {"title": self.title, "words": self.words, kind: self.question.to_json()}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read the data of `to_json` back; raises InvalidValue if they are not a question."""
        match data:
            case {"title": str(title), "words": str(words), "sweep": sweep}:
                return cls(title=title, words=words, question=Sweep.from_json(sweep))
            case {"title": str(title), "words": str(words), "experiment": experiment}:
                return cls(title=title, words=words, question=Experiment.from_json(experiment))
        raise InvalidValue("question", data, "an object with title, words and sweep or experiment")


def _spread(sizes: Sequence[float]) -> list[float]:
    """Return sizes in an order that covers the range early: both ends, then the middle of the widest gap."""
    order = list(dict.fromkeys((0, len(sizes) - 1))) if sizes else []
    while len(order) < len(sizes):
        ends = sorted(order)
        low, high = max(itertools.pairwise(ends), key=lambda gap: gap[1] - gap[0])
        order.append((low + high) // 2)
    return [sizes[place] for place in order]


def _settings(source: Trial | Point) -> tuple[object, ...]:
    return tuple(getattr(source, name) for name in TRAINING)


def _misread(contender: str) -> str:
    """Return why a row's contender does not fit a class, as a clause after "because"; empty if it fits."""
    try:
        if len(contender) > CONTENDER_LENGTH:
            raise InvalidValue("contender", contender, f"at most {CONTENDER_LENGTH} characters")
        read = Contender.parse(contender)
    except (InvalidValue, ValueError):
        return f"its device {contender!r:.40} cannot be read"
    return (
        f"its device {contender!r:.40} uses a variant, and a class compares default loops"
        if read.lane != PLAIN_LANE
        else ""
    )
