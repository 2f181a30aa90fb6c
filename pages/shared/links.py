"""What a link can say: the parameters of every page, and a question as parameters.

The settings are called like the fields of `core.question.experiment` and `core.question.sweep`, as the command line and
the store spell them. `PAGES` is the table of all that a page puts into its link; a control that is not in it cannot be
drawn. Nothing here reads a link or a session: that is `pages.shared.session`.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import InvalidValue
from core.question import custom, models
from core.question.describe import format_value
from core.question.experiment import Experiment, Point
from core.question.fields import AXES, SIZE_AXES, TRAINING
from core.question.presets import PRESETS, SCALES
from core.question.published import QUESTIONS
from core.question.refusals import control
from core.question.sweep import Sweep

SETTINGS = (*TRAINING, "training", "size", "pairs", "devices", "lanes", "budget_s", "whole", "recorded")
"""Every setting of the Compare page."""

RANGE, VALUES = "{axis}_range", "{axis}_values"
"""Parameters of the link with the range of the axis, and the values of another one; one each, as their stops differ."""

SWEEP_LIMITS = {"sweep_budget_s": "budget_s", "point_budget_s": "point_budget_s", "pairs": "pairs"}
"""Parameter of the link → field of a sweep; the budget of a sweep is not the one of a comparison."""

SWEEP_SETTINGS = (
    *(*TRAINING, "training", "axis", *(RANGE.format(axis=axis) for axis in SIZE_AXES), "adaptive", "also"),
    *(VALUES.format(axis=axis) for axis in AXES if axis not in custom.FIELDS),
    *("contenders", "lanes", "fair", "recorded", "recorded_sizes", *SWEEP_LIMITS),
)
"""Every setting of the Crossover page."""

TUTORIAL_SETTINGS = ("tutorial", "scale", "digits", "devices")
"""Every setting of the Tutorials page."""

LESSON_SETTINGS = ("lesson", "data", "seeds", "margin", "devices")
"""Every setting of the Lessons page."""

PREDICTION = "predict_{name}"
"""Parameter of the link with what was expected of a tutorial or a lesson."""

LESSON_TITLES: dict[str, str] = {
    "clock": "The clock",
    "moving": "Moving things",
    "loader": "The loader",
    "learning": "Same learning?",
    "small": "Why small models lose",
}
"""Title of each lesson by its name in links."""

SEEDS = (2, 5, 10)
MARGINS = (0.25, 0.5, 1.0, 2.0)
"""What the lesson on learning is run with: seeds, and percentage points."""

CHOICES: dict[str, Mapping[str, str]] = {
    "tutorial": {name: preset.title for name, preset in PRESETS.items()},
    "lesson": LESSON_TITLES,
    "scale": {name: name.capitalize() for name in SCALES},
    **{name: {str(one): str(one) for one in values} for name, values in {"seeds": SEEDS, "margin": MARGINS}.items()},
    **{question: answers for question, (_, answers) in QUESTIONS.items()},
}
"""What these parameters may be, with names for people; those of a training say so themselves."""

GALLERY_FILTERS = {
    "in_answer": "Answer",
    "in_machine": "Machine",
    "in_kind": "Device kind",
    "in_device": "Device",
    "in_dataset": "Data set",
    "in_model": "Model",
    "in_training": "One's own training",
    "in_protocol": "Protocol",
    "in_trust": "Trust mark",
    "in_source": "Source",
    "in_outcome": "Outcome",
    "in_publisher": "Published by",
}
"""Label of each filter of the Gallery, by its parameter."""

BESIDE = "beside"
"""Parameter of the Gallery's link with the studies, or the run, that are put beside the one that is open."""

AGAINST = "against"
"""The same of a published study beside one that was measured, or the other way round."""

RESULT_VIEWS = ("loss", "reports", "blocks")
"""Parts of a run's result that open and close."""

COMPARE_VIEWS = ("more", "stock", *RESULT_VIEWS, "fingerprints")
"""Every control of what the Compare page shows of its answer."""

CROSSOVER_VIEWS: tuple[str, ...] = ("more", "stock", "slice", "basis", "speedup", "recorded_speedup", "fingerprints")
CROSSOVER_VIEWS += ("machine", "timings", "own_speedup", "recorded_studies")
"""Every control of what the Crossover page shows of its answer."""

GALLERY_VIEWS: tuple[str, ...] = (*GALLERY_FILTERS, "filters", "view", "studies_page", "trials_page", "basis", "size")
GALLERY_VIEWS += (BESIDE, AGAINST, "speedup", *RESULT_VIEWS, "lacks", "fingerprint", "add", "unread")
"""Every control of the Gallery page."""

PageName = Literal["compare", "crossover", "devices", "tutorials", "lessons", "cases", "class", "gallery"]
Kind = Literal["job", "run", "study", "sweep", "case"]


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """What a page puts into its link: what is asked, which a link may lock and hide, what is shown, and beside it."""

    settings: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    @functools.cached_property
    def controls(self) -> frozenset[str]:
        return frozenset((*self.settings, *self.views))

    @functools.cached_property
    def guide(self) -> tuple[str, ...]:
        """Parameters of a guided start that are no settings of the page."""
        return tuple(name for name in GUIDE if name not in self.settings)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """Every parameter of the page's link, in the order in which a link has them."""
        return tuple(dict.fromkeys((*self.settings, *self.views, *self.kinds, "shown", KEPT_VALUES, *GUIDE)))


PAGES: dict[PageName, PageLink] = {
    "compare": PageLink(settings=SETTINGS, views=COMPARE_VIEWS, kinds=("job", "run")),
    "crossover": PageLink(settings=SWEEP_SETTINGS, views=CROSSOVER_VIEWS, kinds=("job", "study", "sweep")),
    "devices": PageLink(),
    "tutorials": PageLink(settings=TUTORIAL_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in PRESETS)),
    "lessons": PageLink(settings=LESSON_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in LESSON_TITLES)),
    "cases": PageLink(settings=tuple(QUESTIONS), kinds=("case",)),
    "class": PageLink(views=("class", "teacher", "codes", "results")),
    "gallery": PageLink(views=GALLERY_VIEWS, kinds=("run", "study")),
}
"""By page, every parameter of its link but those of a guided start."""

GUIDE = ("lock", "hide", "text", "lesson")
"""Parameters of a guided start that stay in the link; a `preset` turns into the settings that it stands for."""

KEPT_VALUES = "kept"
"""Parameter of the link with the values of controls that gave way to others, each as `name:value`."""

READABLE = ",:@"
"""Letters that a link may have as they are."""

UNLOCK_PREFIX = "-"
"""Put before the name of a setting that `lock=all` leaves open."""

MAX_LETTERS = 8_000
"""Letters of a link: web servers before us take no more in one line of a request, and the longest of ours, with an
instruction in another script and every setting, has some 7,500."""

MAX_PARAMETERS = 100
"""Parameters of a link; no page has more than 60."""

MAX_VALUES, MAX_VALUE_LETTERS = 200, 2_000
"""Values of one parameter, and letters of each; half of a sweep's points, and four times the longest instruction."""

MAX_NAMED, MAX_NAMED_LETTERS = 3, 20
"""Of many faults so many are named, each by so many letters."""

PATTERNS: dict[Kind, re.Pattern[str]] = {
    "job": re.compile(r"\d{20}-[0-9a-f]{6}"),
    "run": re.compile(r"[0-9a-f]{12}"),
    "study": re.compile(r"[0-9a-f]{12}|[a-z][a-z0-9-]{1,40}"),
    "sweep": re.compile(r"[0-9a-f]{16}"),
    "case": re.compile(r"[a-z][a-z0-9-]{1,40}"),
}
"""What the name of each kind looks like; published studies have one in words."""


def find_excess(link: Mapping[str, Sequence[str]]) -> set[str]:
    """Parameters that say more than a link of ours ever does; all of them where the link as a whole does."""
    letters = sum(len(name) + len(value) for name, values in link.items() for value in values)
    if len(link) > MAX_PARAMETERS or letters > MAX_LETTERS:
        return set(link)
    return {
        name for name, values in link.items() if len(values) > MAX_VALUES or max(map(len, values)) > MAX_VALUE_LETTERS
    }


def list_link_faults(page: PageName, link: Mapping[str, Sequence[str]]) -> list[str]:
    """What a link says that no control of the page has and nothing it can show is called, a sentence each."""
    known = PAGES[page]
    strange = [
        str(
            InvalidValue(
                kind.capitalize(), shorten_list(link[kind]), f"the name of a {kind}, as a link of this app has it"
            )
        )
        for kind in known.kinds
        if kind in link and not PATTERNS[kind].fullmatch(link[kind][0])
    ]
    return strange + [
        InvalidValue(name, shorten_list(link[name]), "one of {}", titles).format_message(
            control(name)[:1].upper() + control(name)[1:], titles.__getitem__
        )
        for name, titles in CHOICES.items()
        if name in known.controls and name in link and link[name][-1] not in titles
    ]


def shorten_list(names: Sequence[str]) -> str:
    """The first of many names, with how many more there are."""
    shown = [name if len(name) <= MAX_NAMED_LETTERS else f"{name[:MAX_NAMED_LETTERS]}…" for name in names[:MAX_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else "")


def make_run_link(experiment: Experiment) -> dict[str, str | list[str]]:
    """An experiment as parameters of a link to the Compare page."""
    data, pairs = experiment.to_json(), {"pairs": format_value(experiment.pairs)} if experiment.point.training else {}
    devices = data["contenders"]
    return {
        **make_point_link(experiment.point),
        **pairs,
        "devices": devices,
        "budget_s": format_value(data["budget_s"]),
    }


def make_point_link(point: Point) -> dict[str, str]:
    """A training as parameters of a link; one's own has its name there, and nothing of where or what it is."""
    if point.training:
        return {"training": point.training, "size": format_value(point.size)}
    return {name: format_value(getattr(point, name)) for name in TRAINING}


def make_sweep_link(sweep: Sweep) -> dict[str, str | list[str]]:
    """A sweep as parameters of a link to the Crossover page."""
    data, axis = sweep.to_json(), sweep.axes[0]
    ends = [format_value(axis.values[0]), format_value(axis.values[-1])]
    varied = {of.name for of in sweep.axes}
    link: dict[str, str | list[str]] = {n: v for n, v in make_point_link(sweep.point).items() if n not in varied}
    link |= {} if sweep.point.training else {"axis": axis.name}
    link |= {RANGE.format(axis=axis.name): ends, "adaptive": format_value(sweep.adaptive)}
    if len(sweep.axes) > 1:
        link["also"] = [other.name for other in sweep.axes[1:]]
    link |= {VALUES.format(axis=of.name): [format_value(value) for value in of.values] for of in sweep.axes[1:]}
    limits = {name: format_value(data[field]) for name, field in SWEEP_LIMITS.items()}
    return {**link, "contenders": data["contenders"], "fair": "false", **limits}


def strip_answers(page: PageName, link: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What of a page's link is its task: without the answer that stands beside it, and what was expected of it."""
    answers = {*PAGES[page].kinds, "shown", *(name for name in link if name.startswith(PREDICTION.format(name="")))}
    return {name: values for name, values in link.items() if name not in answers}


def make_brief_link(point: Point) -> dict[str, str]:
    """A training as parameters of a link, without those that its controls say anyway."""
    if point.training:
        return make_point_link(point)
    link, usual = make_point_link(point), {**make_point_link(Point(dataset=point.dataset)), "dataset": Point().dataset}
    shaped_by = models.list_model_sizes(point.model, point.dataset)
    if point.model != usual["model"]:  # a size of another family may usually be another
        usual = {name: value for name, value in usual.items() if name not in shaped_by}
    return {name: value for name, value in link.items() if name not in point.idle and value != usual.get(name)}
