"""The contents of a link: the parameters of every page, and a question as parameters.

Settings have the names of the fields of `core.question.experiment` and `core.question.sweep`, in the spelling of the
command line and the store. `PAGES` is the table of all parameters of a page; a control that is not in it cannot appear.
This module reads no link and no session: `pages.shared.session` does.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import InvalidValue
from core.question import custom, models
from core.question.describe import control, format_value
from core.question.experiment import Experiment, Point
from core.question.fields import AXES, SIZE_AXES, TRAINING
from core.question.presets import PRESETS, SCALES
from core.question.published import QUESTIONS
from core.question.sweep import Sweep

SETTINGS = (*TRAINING, "training", "size", "pairs", "devices", "lanes", "budget_s", "whole", "recorded")
"""Every setting of a training at one size."""

RANGE, VALUES = "{axis}_range", "{axis}_values"
"""Parameters of the link for the range of one axis and the values of another; one per axis, because stops differ."""

SWEEP_LIMITS = {"sweep_budget_s": "budget_s", "point_budget_s": "point_budget_s", "pairs": "pairs"}
"""Parameter of the link → field of a sweep; the budget of a sweep differs from that of a comparison."""

SWEEP_SETTINGS = (
    *(*TRAINING, "training", "axis", *(RANGE.format(axis=axis) for axis in SIZE_AXES), "adaptive", "also"),
    *(VALUES.format(axis=axis) for axis in AXES if axis not in custom.FIELDS),
    *("contenders", "lanes", "fair", "recorded", "recorded_sizes", *SWEEP_LIMITS),
)
"""Every setting of a training at a range of sizes."""

EXPLORE_SETTINGS = tuple(dict.fromkeys(("sizes", *SETTINGS, *SWEEP_SETTINGS)))
"""Every setting of the Explore page."""

TUTORIAL_SETTINGS = ("tutorial", "scale", "digits", "devices")
"""Every setting of the Tutorials page."""

LESSON_SETTINGS = ("lesson", "data", "seeds", "margin", "devices")
"""Every setting of the Lessons page."""

PREDICTION = "predict_{name}"
"""Parameter of the link with the prediction for a tutorial or a lesson."""

LESSON_TITLES: dict[str, str] = {
    "clock": "The clock",
    "moving": "Data transfer",
    "loader": "The loader",
    "learning": "Do both learn the same?",
    "small": "Why small models lose",
}
"""Title of each lesson by its name in links."""

SEEDS = (2, 5, 10)
MARGINS = (0.25, 0.5, 1.0, 2.0)
"""Numbers of seeds, and margins in percentage points, for the lesson on learning."""

SIZES = {"one": "One size", "range": "A range of sizes"}
"""Choices of how many sizes to measure: a run is a sweep with one size."""

CHOICES: dict[str, Mapping[str, str]] = {
    "sizes": SIZES,
    "tutorial": {name: preset.title for name, preset in PRESETS.items()},
    "lesson": LESSON_TITLES,
    "scale": {name: name.capitalize() for name in SCALES},
    **{name: {str(one): str(one) for one in values} for name, values in {"seeds": SEEDS, "margin": MARGINS}.items()},
    **{question: answers for question, (_, answers) in QUESTIONS.items()},
}
"""Possible values of these parameters, with their readable names; the fields of a training define their own."""

GALLERY_FILTERS = {
    "in_answer": "Answer",
    "in_machine": "Machine",
    "in_kind": "Device kind",
    "in_device": "Device",
    "in_dataset": "Data set",
    "in_model": "Model",
    "in_training": "Your own training",
    "in_protocol": "Protocol",
    "in_trust": "Quality checks",
    "in_source": "Source",
    "in_outcome": "Outcome",
    "in_publisher": "Published by",
}
"""Label of each filter of the Gallery, by its parameter."""

BESIDE = "beside"
"""Parameter of the Gallery's link with the studies, or the run, to compare with the open one."""

AGAINST = "against"
"""Parameter of the Gallery's link with a measured study to compare with an open published one, or the reverse."""

RESULT_VIEWS = ("race", "loss", "reports", "blocks")
"""Parts of a run's result that open and close."""

EXPLORE_VIEWS: tuple[str, ...] = (
    "card",
    "more",
    "stock",
    *RESULT_VIEWS,
    "slice",
    "basis",
    "speedup",
    "recorded_speedup",
)
EXPLORE_VIEWS += ("fingerprints", "machine", "timings", "own_speedup", "recorded_studies", "accuracy")
"""Every control of an answer on the Explore page."""

GALLERY_VIEWS: tuple[str, ...] = (*GALLERY_FILTERS, "filters", "view", "studies_page", "trials_page", "basis", "size")
GALLERY_VIEWS += (BESIDE, AGAINST, "speedup", *RESULT_VIEWS, "lacks", "fingerprint", "add", "unread")
"""Every control of the Gallery page."""

PageName = Literal["explore", "devices", "tutorials", "lessons", "cases", "class", "gallery"]
Kind = Literal["job", "run", "study", "sweep", "case"]


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """The parameters in the link of a page: settings, which a link may lock and hide, views, and kinds of results."""

    settings: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    @functools.cached_property
    def controls(self) -> frozenset[str]:
        return frozenset((*self.settings, *self.views))

    @functools.cached_property
    def guide(self) -> tuple[str, ...]:
        """Parameters of a guided start that are not settings of the page."""
        return tuple(name for name in GUIDE if name not in self.settings)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """Every parameter of the page's link, in the order of the link."""
        return tuple(dict.fromkeys((*self.settings, *self.views, *self.kinds, "shown", KEPT_VALUES, *GUIDE)))


PAGES: dict[PageName, PageLink] = {
    "explore": PageLink(settings=EXPLORE_SETTINGS, views=EXPLORE_VIEWS, kinds=("job", "run", "study", "sweep")),
    "devices": PageLink(),
    "tutorials": PageLink(settings=TUTORIAL_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in PRESETS)),
    "lessons": PageLink(settings=LESSON_SETTINGS, views=tuple(PREDICTION.format(name=name) for name in LESSON_TITLES)),
    "cases": PageLink(settings=tuple(QUESTIONS), kinds=("case",)),
    "class": PageLink(views=("class", "teacher", "codes", "results")),
    "gallery": PageLink(views=GALLERY_VIEWS, kinds=("run", "study")),
}
"""By page, every parameter of its link except those of a guided start."""

GUIDE = ("lock", "hide", "text", "lesson")
"""Parameters of a guided start that stay in the link; the settings of a `preset` replace it there."""

KEPT_VALUES = "kept"
"""Parameter of the link with the values of replaced controls, each as `name:value`."""

READABLE = ",:@"
"""Characters that a link may contain without escaping."""

UNLOCK_PREFIX = "-"
"""Prefix of the name of a setting that `lock=all` leaves open."""

MAX_LETTERS = 8_000
"""Largest number of characters in a link. Common web servers in front of the app accept no more in one line of a
request. The app's longest link, with an instruction in a non-Latin script and every setting, has about 7,500."""

MAX_PARAMETERS = 100
"""Largest number of parameters of a link; no page has more than 60."""

MAX_VALUES, MAX_VALUE_LETTERS = 200, 2_000
"""Largest number of values of a parameter, and of characters in each: half of the points of a sweep, and four times the
longest instruction."""

MAX_NAMED, MAX_NAMED_LETTERS = 3, 20
"""Largest number of faults that are named, and of characters in each."""

PATTERNS: dict[Kind, re.Pattern[str]] = {
    "job": re.compile(r"\d{20}-[0-9a-f]{6}"),
    "run": re.compile(r"[0-9a-f]{12}"),
    "study": re.compile(r"[0-9a-f]{12}|[a-z][a-z0-9-]{1,40}"),
    "sweep": re.compile(r"[0-9a-f]{16}"),
    "case": re.compile(r"[a-z][a-z0-9-]{1,40}"),
}
"""The format of the id of each kind; published studies have an id in words."""


def find_excess(link: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the parameters that are longer than in any link of the app; all if the whole link is too long."""
    letters = sum(len(name) + len(value) for name, values in link.items() for value in values)
    if len(link) > MAX_PARAMETERS or letters > MAX_LETTERS:
        return set(link)
    return {
        name for name, values in link.items() if len(values) > MAX_VALUES or max(map(len, values)) > MAX_VALUE_LETTERS
    }


def list_link_faults(page: PageName, link: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence for each value of a link that fits no control of the page and names no result."""
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
    """Return the first of many names, with the number of the others."""
    shown = [name if len(name) <= MAX_NAMED_LETTERS else f"{name[:MAX_NAMED_LETTERS]}…" for name in names[:MAX_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else "")


def make_run_link(experiment: Experiment) -> dict[str, str | list[str]]:
    """Return an experiment as parameters of a link to the Explore page."""
    data, pairs = experiment.to_json(), {"pairs": format_value(experiment.pairs)} if experiment.point.training else {}
    devices = data["contenders"]
    return {
        **make_point_link(experiment.point),
        **pairs,
        "devices": devices,
        "budget_s": format_value(data["budget_s"]),
    }


def make_point_link(point: Point) -> dict[str, str]:
    """Return a training as parameters of a link; a custom script only by name, without its path or source."""
    if point.training:
        return {"training": point.training, "size": format_value(point.size)}
    return {name: format_value(getattr(point, name)) for name in TRAINING}


def make_sweep_link(sweep: Sweep) -> dict[str, str | list[str]]:
    """Return a sweep as parameters of a link to the Explore page."""
    data, axis = sweep.to_json(), sweep.axes[0]
    ends = [format_value(axis.values[0]), format_value(axis.values[-1])]
    varied = {of.name for of in sweep.axes}
    link: dict[str, str | list[str]] = {n: v for n, v in make_point_link(sweep.point).items() if n not in varied}
    link |= {"sizes": "range"} | ({} if sweep.point.training else {"axis": axis.name})
    link |= {RANGE.format(axis=axis.name): ends, "adaptive": format_value(sweep.adaptive)}
    if len(sweep.axes) > 1:
        link["also"] = [other.name for other in sweep.axes[1:]]
    link |= {VALUES.format(axis=of.name): [format_value(value) for value in of.values] for of in sweep.axes[1:]}
    limits = {name: format_value(data[field]) for name, field in SWEEP_LIMITS.items()}
    return {**link, "contenders": data["contenders"], "fair": "false", **limits}


def strip_answers(page: PageName, link: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the task of a page's link, without the shown answer and without predictions."""
    answers = {*PAGES[page].kinds, "shown", *(name for name in link if name.startswith(PREDICTION.format(name="")))}
    return {name: values for name, values in link.items() if name not in answers}


def make_brief_link(point: Point) -> dict[str, str]:
    """Return a training as parameters of a link, without values that equal the defaults of its controls."""
    if point.training:
        return make_point_link(point)
    link, usual = make_point_link(point), {**make_point_link(Point(dataset=point.dataset)), "dataset": Point().dataset}
    shaped_by = models.list_model_sizes(point.model, point.dataset)
    if point.model != usual["model"]:  # the default of a size differs between families
        usual = {name: value for name, value in usual.items() if name not in shaped_by}
    return {name: value for name, value in link.items() if name not in point.idle and value != usual.get(name)}
