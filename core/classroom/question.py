"""What a class measures: one training, or one varied along its axes, with everything fixed but the devices.

So everybody measures the same, on what they have. Rows of any other training say why they are not pooled.
"""

import dataclasses
import functools
from collections.abc import Sequence
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
    CHALLENGER: "the accelerator (without one: all threads of the CPU)",
    BASELINE: "the CPU (without an accelerator: one thread of it)",
    SAME: "about the same, within 10 %",
}
"""Who is expected to be faster, with words for people."""

PLAIN = {"protocol_version": PROTOCOL_VERSION, "precision": "fp32", "execution": "eager", "drained": True}
"""Columns that say how a row was measured; rows that were measured otherwise are not pooled."""


RUNS_A_POINT = 10
"""Runs of one training that a file may bring: who measured again brings more than one, nobody brings a hundred."""

CONTENDER_LENGTH = 60
"""Characters of a contender; the longest with all its lanes has fewer."""


@dataclass(frozen=True, kw_only=True)
class ClassQuestion:
    """What a class measures, on `ANYBODY`: its title for people, and the same in words of the command line."""

    title: str
    question: Experiment | Sweep
    words: str

    def __post_init__(self) -> None:
        if self.question.point.training:
            raise InvalidValue(
                "training", self.question.point.training, "of the catalogue: nobody's own code is run for a class"
            )

    @classmethod
    def from_preset(cls, name: str) -> Self:
        """The question of a tutorial at the scale of a class; raises InvalidValue where there is no such tutorial."""
        preset = presets.preset(name)
        return cls(
            title=preset.title,
            question=preset.build_question("class", ANYBODY),
            words=describe.format_options({"preset": name}),
        )

    @property
    def axis(self) -> Axis | None:
        """The size along which a crossover is looked for; None where there is one training only."""
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

    def with_contenders(self, contenders: Sequence[Contender]) -> Experiment | Sweep:
        """The question for somebody's devices; raises InvalidValue unless there are two or more, all different."""
        if len(contenders) < 2:
            raise InvalidValue("devices", ", ".join(map(str, contenders)), "at least two different ones")
        return dataclasses.replace(self.question, contenders=tuple(contenders))

    def objection(self, trial: Trial) -> str:
        """Why a row is not pooled, in words that go on after "because"; empty if it is."""
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
        return "its settings are not combined as the class combines them"

    @functools.cached_property
    def _allowed(self) -> frozenset[tuple[object, ...]]:
        return frozenset(map(_settings, self.points))

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file."""
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


def _settings(source: Trial | Point) -> tuple[object, ...]:
    return tuple(getattr(source, name) for name in TRAINING)


def _misread(contender: str) -> str:
    """Why a row's contender is none of a class's, in the same words; empty if it may be."""
    try:
        if len(contender) > CONTENDER_LENGTH:
            raise InvalidValue("contender", contender, f"at most {CONTENDER_LENGTH} characters")
        read = Contender.parse(contender)
    except (InvalidValue, ValueError):
        return f"its device {contender!r:.40} cannot be read"
    return f"its device {contender!r:.40} is not a plain one" if read.lane != PLAIN_LANE else ""
