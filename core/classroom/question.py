"""The question of a class: one training, or one varied on its axes, with everything fixed but the devices.

So all students measure the same question, on their own hardware. Rows of any other training give a reason why they are
not pooled.
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
"""Contenders of a question before it is known whose they are."""

NEVER = "never"
"""A predicted place beyond every size."""

BASELINE, CHALLENGER, SAME = "baseline", "challenger", "same"
WINNERS: dict[str, str] = {
    CHALLENGER: "all CPU threads",
    BASELINE: "one CPU thread",
    SAME: "about the same, within 10 %",
}
"""Choices of the prediction of the faster device, with words for people whose machine has no GPU."""

WINNERS_WITH_GPU = WINNERS | {CHALLENGER: "the GPU", BASELINE: "the CPU"}
"""The same with words for people who have one."""

PLAIN = {"protocol_version": PROTOCOL_VERSION, "precision": "fp32", "execution": "eager", "drained": True}
"""Columns that say how a row was measured; rows that were measured otherwise are not pooled."""


RUNS_A_POINT = 10
"""Runs of one training that a file may bring: who measured again brings more than one, nobody brings a hundred."""

CONTENDER_LENGTH = 60
"""Limit of a contender's characters; the longest with all its variants has fewer."""


@dataclass(frozen=True, kw_only=True)
class ClassQuestion:
    """The question of a class, on `ANYBODY`: its title for people, and the same in words of the command line."""

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

        Raises InvalidValue where there is no such tutorial.
        """
        preset = presets.preset(name)
        return cls(
            title=preset.title,
            question=preset.build_question("class", ANYBODY),
            words=describe.format_options({"preset": name}),
        )

    @property
    def axis(self) -> Axis | None:
        """The size axis on which a crossover is looked for; None where there is one training only."""
        if not isinstance(self.question, Sweep):
            return None
        return next((axis for axis in self.question.axes if axis.name in SIZE_AXES), None)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """Every training of the question."""
        return policy.question_points(self.question)

    @property
    def most_runs(self) -> int:
        """Runs that one file may bring."""
        return RUNS_A_POINT * len(self.points)

    @property
    def places(self) -> tuple[float, ...]:
        """Sizes from which on the challenger can be expected to win, ascending; none for one training."""
        axis = self.axis
        return tuple(sorted({size_on_axis(point, axis.name) for point in self.points})) if axis else ()

    @property
    def dealt_sizes(self) -> tuple[float, ...]:
        """Sizes that students of one host can share out: those of a sweep with one axis; else none."""
        return self.places if isinstance(self.question, Sweep) and len(self.question.axes) == 1 else ()

    def deal_size(self, taken: Mapping[float, int], uncertain: Collection[float] = ()) -> float:
        """Return the size that the next student measures: the one that fewest have, uncertain ones first.

        Args:
            taken: size → how many students have measured it, or are about to.
            uncertain: sizes at which neither device is clearly faster yet.

        Returns:
            One of `dealt_sizes`, in an order that covers the range early: both ends, the middle, the middles between.
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
        """Return why a row is not pooled, in words that go on after "because"; empty if it is."""
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
        """Read `to_json`'s data back; raises InvalidValue where it is none."""
        match data:
            case {"title": str(title), "words": str(words), "sweep": sweep}:
                return cls(title=title, words=words, question=Sweep.from_json(sweep))
            case {"title": str(title), "words": str(words), "experiment": experiment}:
                return cls(title=title, words=words, question=Experiment.from_json(experiment))
        raise InvalidValue("question", data, "an object with title, words and sweep or experiment")


def _spread(sizes: Sequence[float]) -> list[float]:
    """Return sizes in an order whose beginnings cover the range: both ends, then the middle of the widest gap left."""
    order = list(dict.fromkeys((0, len(sizes) - 1))) if sizes else []
    while len(order) < len(sizes):
        ends = sorted(order)
        low, high = max(itertools.pairwise(ends), key=lambda gap: gap[1] - gap[0])
        order.append((low + high) // 2)
    return [sizes[place] for place in order]


def _settings(source: Trial | Point) -> tuple[object, ...]:
    return tuple(getattr(source, name) for name in TRAINING)


def _misread(contender: str) -> str:
    """Return why a row's contender is none of a class's, in the same words; empty if it may be."""
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
