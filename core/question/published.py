"""Published results as data: numbers of the four tutorials, and threads on GPUs that were not faster.

All figures are their authors', with addresses; no statistic uses them, and none is a row of the store. The facts of
cases are in `data/published/cases.toml`. A case may have a substitute training to run here, and its fix.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..errors import InvalidValue, require_choice
from ..files import documents, sources
from ..files.project import PROJECT, SHIPPED_DATA
from . import presets
from .experiment import Contender, Experiment, Point
from .fields import FIELDS, TRAINING
from .models import families

FILE = SHIPPED_DATA / "published" / "cases.toml"
CASES_FOLDER = PROJECT / "examples" / "cases"
"""Folder of trainings of cases that are not in the catalogue: the only code files that the Cases page runs."""

BUDGET_S = 30.0
"""Time limit of one training of a case, in seconds."""

FIT_BUDGET_S = 120.0
"""Time limit for boosted trees, in seconds.

The threads of a fit wait for each other, so on a busy machine a fit of half a second may take twenty. A run ends
earlier if its answer is certain.
"""

CAUSES: dict[str, str] = {
    "small": "too little work in a step",
    "recurrent": "a sequence processed one small step at a time",
    "rows": "too few rows for boosted trees",
    "host": "work on the host between the steps",
    "waits": "values that are read from the device in every step",
    "loader": "a loader or a disk that cannot keep up",
    "clock": "a clock that does not wait for the device",
    "threads": "more CPU threads than the work needs",
    "float64": "double precision",
    "heat": "a GPU that overheated",
}
"""Kinds of causes, in words that follow a colon."""

Answers = Mapping[str, str]
"""Name of a question of `QUESTIONS` → the given answer."""

QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "symptom": (
        "What do you see?",
        {
            "slower": "GPU slower than CPU",
            "same": "about as fast",
            "idle": "GPU hardly used",
            "fading": "slower and slower",
            "doubt": "impossible figures",
        },
    ),
    "kind": (
        "What do you train?",
        {
            "tables": "small or tabular network",
            "sequences": "recurrent network",
            "transformer": "transformer",
            "images": "images",
            "trees": "boosted trees",
            "agents": "an agent",
        },
    ),
    "batch": ("How large is a batch?", {"one": "1 to 16", "some": "17 to 512", "many": "more"}),
    "loop": (
        "What else does your loop do?",
        {
            "nothing": "nothing",
            "reads": "reads the loss each step",
            "works": "metrics or a simulation",
            "files": "reads files",
        },
    ),
}
"""The questionnaire: each question with its answers, by their names in links."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A reported number: its subject, and its value in the unit of the case."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A substitute for the reported training, or the changes of its remedy.

    Attributes:
        fields: fields of a training of the catalogue; for a remedy, the changed fields.
        training: file and function in `examples/cases`, in place of fields.
        size: argument of that function; 0 in a remedy for the same size.
        title: short title of a remedy.
        work: ratio of the samples of a step with the remedy to those without; 0 if the batch sizes determine it.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    training: str = ""
    size: int = 0
    title: str = ""
    work: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One public thread.

    Attributes:
        name: name in links and commands.
        title: short title of the subject.
        thread: project and number.
        address: address of the thread.
        date: date of the question, ISO 8601; empty if the page has none.
        model: the trained model, with its sizes as far as reported.
        devices: the devices used.
        reported: the observation, in a sentence.
        cause: key of `CAUSES`.
        found: the actual cause, and the person who identified it.
        remedied: advice, or the fix that helped.
        unit: unit of the figures; empty without figures.
        figures: reported numbers.
        open: unknown facts, or facts that could not be looked up; empty if there are none.
        note: differences of the training that runs here.
        gpu: reason why the cause needs a GPU; empty if a CPU shows it.
        lesson: the lesson that shows the cause; empty without one.
        fits: question of `QUESTIONS` → answers that suggest the same cause.
        here: substitute training here; None without one.
        remedy: change that fixes it; None without one.
    """

    name: str
    title: str
    thread: str
    address: str
    date: str
    model: str
    devices: str
    reported: str
    cause: str
    found: str
    remedied: str
    fits: dict[str, tuple[str, ...]]
    unit: str = ""
    figures: tuple[Figure, ...] = ()
    open: str = ""
    note: str = ""
    gpu: str = ""
    lesson: str = ""
    here: Setting | None = None
    remedy: Setting | None = None

    @property
    def runnable(self) -> bool:
        """Whether a training of the case runs here and can show its cause."""
        return self.here is not None

    def point(self) -> Point:
        """Return the training that runs here in place of the reported one.

        Raises:
            InvalidValue: there is none, or its settings are invalid.
            OSError: its file is missing.
        """
        if self.here is None:
            raise InvalidValue("case", self.name, "one with a training that can be run here")
        return _point(self.here)

    def point_with_remedy(self) -> Point | None:
        """Return the training with the fix; None without a fix. Raises as `point`."""
        if self.remedy is None or self.here is None:
            return None
        change, here = self.remedy, self.here
        if here.training:
            changed = replace(here, training=change.training or here.training, size=change.size or here.size)
            return _point(changed)
        return _point(replace(here, fields={**here.fields, **change.fields}))

    def contenders(self, devices: Iterable[str], cores: int) -> tuple[Contender, ...]:
        """Return the default contenders, among the devices that can run its training.

        Args:
            devices: devices of this machine.
            cores: number of cores that the measuring process may use.
        """
        library = families.LIBRARIES.get(self.here.fields.get("model", "")) if self.here else None
        able = [name for name in devices if library is None or name.partition(":")[0] in library.devices]
        return presets.default_contenders(able, cores)

    def build_experiments(self, contenders: tuple[Contender, ...]) -> tuple[Experiment, ...]:
        """Build the experiments: the training, and the training with the fix if there is one. Raises as `point`."""
        points = (self.point(), self.point_with_remedy())
        return tuple(
            Experiment(
                point=point,
                contenders=contenders,
                budget_s=FIT_BUDGET_S if point.is_fit else BUDGET_S,
                folder=str(CASES_FOLDER) if point.training else "",
                whole=False,
            )
            for point in points
            if point is not None
        )

    @property
    def more_work(self) -> float:
        """Ratio of the samples of a step with the remedy to those of a step without it."""
        if self.remedy is None or self.here is None:
            return 1.0
        if self.remedy.work:
            return self.remedy.work
        usual = FIELDS["batch_size"].default
        before = self.here.fields.get("batch_size", usual)
        return float(self.remedy.fields.get("batch_size", before) / before)


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A thread without a case, and the reason."""

    thread: str
    why: str


@dataclass(frozen=True, kw_only=True)
class _Listed:
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]


def load_cases() -> dict[str, Case]:
    """Return all cases by name, in the order of the file; raises DamagedFile if the file is invalid."""
    return {case.name: case for case in _load_case_file().cases}


def list_skipped_threads() -> tuple[LeftOut, ...]:
    """Return the threads without a case. Raises as `load_cases`."""
    return _load_case_file().left_out


@functools.cache
def _load_case_file() -> _Listed:
    return documents.convert_to_type(documents.read_toml(FILE) or {}, _Listed)


def find_case(name: str) -> Case:
    """Return the case called `name`.

    Raises:
        InvalidValue: there is none.
    """
    return load_cases()[require_choice("case", name, load_cases())]


def likely(answers: Answers) -> tuple[Case, ...]:
    """Return the cases that contradict the fewest answers, those that fit the most answers first.

    Without answers, return all of them.
    """
    given = {question: answer for question, answer in answers.items() if answer}
    counted = [(_count_fitting(one, given), one) for one in load_cases().values()]
    fewest = min(against for (_, against), _ in counted)
    fitting = [(fits, one) for (fits, against), one in counted if against == fewest]
    return tuple(one for _, one in sorted(fitting, key=lambda each: -each[0]))


def _count_fitting(one: Case, answers: Answers) -> tuple[int, int]:
    """Return the number of answers that fit a case, and of those that contradict it."""
    fits = sum(answer in one.fits.get(question, ()) for question, answer in answers.items())
    against = sum(question in one.fits and answer not in one.fits[question] for question, answer in answers.items())
    return fits, against


def _point(setting: Setting) -> Point:
    if setting.training:
        file = setting.training.partition(":")[0]
        return Point(
            training=setting.training,
            source_hash=sources.hash_sources(CASES_FOLDER / Path(file).name),
            size=setting.size,
        )
    unknown = set(setting.fields) - set(TRAINING)
    if unknown:
        raise InvalidValue("setting", ", ".join(sorted(unknown)), "one of {}", TRAINING)
    return Point(**setting.fields)


Quantity = Literal["seconds", "speedup", "accuracy", "wins_from"]
"""Quantity of a published number.

- seconds: time, per `per`.
- speedup: CPU time over GPU time.
- accuracy: share of right answers on the test samples, 0 to 1.
- wins_from: size on `axis` from which the author reports the GPU to be faster.
"""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published number.

    Attributes:
        preset: name in `core.question.presets`.
        quantity: quantity of the number.
        value: the number itself, in the unit of its quantity.
        device: `cpu` or `gpu`; empty for a number that is about both.
        device_name: device in the author's words; empty if not reported.
        axis: axis of the tutorial, as in `core.question.sweep`; empty if nothing is varied.
        size: value on that axis; None if nothing is varied, and for `wins_from`.
        plus_minus: error of the number, in the same unit; 0 if it was printed, None if unknown.
        per: period of the seconds: `training` or `epoch`; empty elsewhere.
        epoch: number of the epoch, from 1; None if epochs are not distinguished.
        source: author or page.
        date: date of publication, ISO 8601; empty if the page has no date.
        note: how the number was obtained, in one sentence.
    """

    preset: str
    quantity: Quantity
    value: float
    source: str
    date: str
    note: str
    device: str = ""
    device_name: str = ""
    axis: str = ""
    size: float | None = None
    plus_minus: float | None = None
    per: str = ""
    epoch: int | None = None


def list_published(preset: str, quantity: Quantity | None = None) -> tuple[Published, ...]:
    """Return all numbers that one tutorial published, or those of one quantity; empty for an unknown preset."""
    return tuple(entry for entry in PUBLISHED if entry.preset == preset and quantity in (None, entry.quantity))


_DISC: dict[str, Any] = {"preset": "disc", "source": "Penny Xu", "date": "2019-09-04"}
_SIGNAL: dict[str, Any] = {"preset": "signal", "source": "HSF Training", "date": ""}
_MNIST: dict[str, Any] = {"preset": "mnist-linear", "source": "Standalone deep-learning lab #12", "date": ""}
_FASHION: dict[str, Any] = {"preset": "fashion-cnn", "source": "deeplizard", "date": "2020-05-19"}

_READ_OFF = "Read from the published figure by eye; one run; the device was not synchronized before the clock started."
_PRINTED = "Printed by the tutorial; an epoch is training, validation and test together."

_CPU_S = {5: 180.0, 10: 180.0, 100: 200.0, 1_000: 680.0, 2_000: 2_430.0}
_GPU_S = {5: 505.0, 10: 555.0, 100: 505.0, 1_000: 505.0, 2_000: 505.0}
_READ_OFF_S = 15.0
"""The signal tutorial: seconds of a training by neurons of each hidden layer, and the error of a reading."""

_EPOCHS_S = {"cpu": (14.4, 14.7, 15.2, 14.6, 14.4), "gpu": (14.5, 15.2, 15.8, 14.5, 14.1)}
_ACCURACY = {1: 0.884, 5: 0.907}
"""The MNIST lab: seconds of each epoch, and the test accuracy after the first and the last, on both devices."""

PUBLISHED: tuple[Published, ...] = (
    Published(
        axis="depth",
        quantity="wins_from",
        value=10,
        note="About 700,000 parameters; one run per depth, timed without synchronizing the device.",
        **_DISC,
    ),
    *(
        Published(
            device=device,
            device_name=name,
            axis="hidden_size",
            size=size,
            quantity="seconds",
            value=seconds,
            plus_minus=_READ_OFF_S,
            per="training",
            note=_READ_OFF,
            **_SIGNAL,
        )
        for device, name, times in (("cpu", "x86_64", _CPU_S), ("gpu", "P100-PCIe", _GPU_S))
        for size, seconds in times.items()
    ),
    Published(
        axis="hidden_size",
        quantity="wins_from",
        value=1_000,
        note="The text says at least 1,000; the lines of its own figure, whose x-axis is not to scale, cross below.",
        **_SIGNAL,
    ),
    Published(
        axis="hidden_size",
        size=2_000,
        quantity="speedup",
        value=4.5,
        plus_minus=0.5,
        note="The text says 4 to 5 times.",
        **_SIGNAL,
    ),
    *(
        Published(
            device=device,
            quantity="seconds",
            value=seconds,
            plus_minus=0.0,
            per="epoch",
            epoch=epoch,
            note=_PRINTED,
            **_MNIST,
        )
        for device, times in _EPOCHS_S.items()
        for epoch, seconds in enumerate(times, start=1)
    ),
    *(
        Published(quantity="accuracy", value=share, epoch=epoch, note="About the same on both devices.", **_MNIST)
        for epoch, share in _ACCURACY.items()
    ),
    Published(
        quantity="speedup",
        value=2.0,
        note="About twice; the GPU came first at every batch size and number of workers, one epoch per run.",
        **_FASHION,
    ),
)
"""Every published number, tutorial by tutorial."""
