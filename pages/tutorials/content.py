"""The four tutorials in our own words: what each claims, where it contradicts itself, and how to hold a lesson on it.

Numbers are those of `core.question.published`, of the presets, or of rows; none is written here.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core import units
from core.answer.export import exhibit_sections, sections
from core.answer.lesson import claims
from core.answer.lesson.handout import Section
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import catalog, describe, policy
from core.question.demonstration import Demonstration
from core.question.experiment import Contender, Point
from core.question.presets import PRESETS, SCALES, Preset, Scale, checked_scale
from core.question.published import published
from core.question.sweep import vary
from core.results.exhibit import Exhibit
from core.results.schema import Trial
from pages.shared.draw.text import plain
from pages.shared.frame import apart, navigation
from pages.shared.learning import frame, tasks
from pages.shared.learning.frame import Expectation
from pages.shared.learning.tasks import Known, Task
from pages.shared.link import memory, state

CLOCK_S: dict[Scale, float] = {"class": 20.0, "full": 300.0}
"""Seconds for the tutorial's own clock beside ours."""

FASTER = (
    "slower",
    "about the same, within 10 %",
    "up to twice as fast",
    "two to five times as fast",
    "more than five times as fast",
)


@dataclass(frozen=True, kw_only=True)
class Tutorial:
    """One tutorial for a class.

    Attributes:
        contradicts: where its text and its code, or its figure, disagree, and which we follow.
        reading: what a careful measurement looks at, in one or two sentences.
        lesson: the lesson that goes deeper.
    """

    preset: str
    question: Expectation
    contradicts: tuple[str, ...]
    reading: str
    lesson: str

    @property
    def of(self) -> Preset:
        """Its settings."""
        return PRESETS[self.preset]


def _from_where(name: str, title: str, places: Sequence[float], after: str) -> Expectation:
    options = (f"at every {title}", *(f"from {title} {place:,.0f} on" for place in places[1:]), f"at no {title}")
    return Expectation(
        name=name, text=f"From which {title} on will the second device be faster here?", options=options, after=after
    )


def _how_much(name: str, after: str) -> Expectation:
    text = "How will the second device do here, epoch for epoch, against the first?"
    return Expectation(name=name, text=text, options=FASTER, after=after)


TUTORIALS: dict[str, Tutorial] = {
    entry.preset: entry
    for entry in (
        Tutorial(
            preset="disc",
            question=_from_where(
                "disc",
                "depth",
                PRESETS["disc"].axes_at("class")[0].values,
                "Why do the curves lie flat for shallow networks, and rise for deep ones?",
            ),
            contradicts=(
                "The text gives the disc a radius of half π; the code tests whether x² + y² is below 1/(2π). We follow"
                " the code.",
            ),
            reading="Each layer doubles the neurons of the one before, so one more layer means four times the"
            " parameters. Watch where a step begins to cost more on each device, not only where the lines cross.",
            lesson="small",
        ),
        Tutorial(
            preset="signal",
            question=_from_where(
                "signal",
                "hidden size",
                PRESETS["signal"].axes_at("class")[0].values,
                "The published lines cross somewhere else than the text says. Why does the figure mislead?",
            ),
            contradicts=(),
            reading="The published times are of a table that is not public, with a length of training that is not"
            " said. So seconds cannot be compared, but the speedup at each size can.",
            lesson="clock",
        ),
        Tutorial(
            preset="mnist-linear",
            question=_how_much("mnist-linear", "What keeps the faster device waiting in this training?"),
            contradicts=(
                "The tutorial explains its result by the small amount of data. The parts of an epoch, measured in the"
                " lesson on the loader, give another cause: samples that are transformed one by one.",
            ),
            reading="An epoch of ours is the training alone. The tutorial's own clock, which counts validation and"
            " test too, is set beside it below.",
            lesson="loader",
        ),
        Tutorial(
            preset="fashion-cnn",
            question=_how_much("fashion-cnn", "In which cell of the grid does the second device gain most, and why?"),
            contradicts=(),
            reading="Each cell was published from one epoch in one run. Look at how far the cells are apart, and at"
            " the intervals, before ranking them.",
            lesson="loader",
        ),
    )
}


def claim(of: Preset) -> str:
    """What the tutorial claims, in one sentence; its numbers are the published ones."""
    wins = published(of.name, "wins_from")
    speedups = published(of.name, "speedup")
    if of.name == "disc":
        parameters = vary(of.point, {"depth": int(wins[0].value)}).network.parameters
        return (
            f"A GPU pays off only for a network that is large enough: from {wins[0].value:.0f} layers on, which are "
            f"{units.count(parameters)} parameters."
        )
    if of.name == "signal":
        return (
            f"With two hidden layers of equal size the GPU wins from {units.count(int(wins[0].value))} neurons each, "
            f"and at {units.count(int(speedups[0].size or 0))} it is about {units.ratio(speedups[0].value)} as fast."
        )
    if of.name == "mnist-linear":
        return "Training on the GPU takes as long as on the CPU here, and the test accuracy is the same on both."
    gain = units.ratio(speedups[0].value)
    return f"Over a grid of batch sizes and loader workers the GPU always comes first, about {gain} as fast."


def contradictions(of: Tutorial) -> tuple[str, ...]:
    """Where the tutorial disagrees with itself, and what our settings leave out or stand in for."""
    if of.preset != "signal":
        return (*of.contradicts, of.of.note)
    times = {(entry.device, entry.size): entry.value for entry in published("signal", "seconds")}
    sizes = sorted({size for _, size in times if size is not None})
    below = max(size for size in sizes if times["cpu", size] < times["gpu", size])
    above = min(size for size in sizes if times["cpu", size] > times["gpu", size])
    wins = int(published("signal", "wins_from")[0].value)
    said = (
        f"The text says that the GPU wins from {units.count(wins)} neurons on. The published times change sides"
        f" between {units.count(int(below))} and {units.count(int(above))}: the"
        " figure's x-axis is not to scale. We show the times on a log scale."
    )
    return (said, of.of.note)


def task(of: Preset, scale: Scale, contenders: Sequence[str]) -> Task:
    """What is measured: the sweep or the training, and the tutorial's own clock.

    Raises:
        InvalidValue: there are too few devices, or too many.
    """
    devices = tuple(Contender.parse(text) for text in contenders)
    ends = devices if len(devices) < 2 else (devices[0], devices[-1])
    clock = Demonstration(
        kind="clock",
        point=of.at(scale),
        contenders=ends,
        budget_s=CLOCK_S[scale],
        recipes=(claims.recipe_name(of),),
    )
    return Task(asked=(of.asked(scale, devices), clock))


def points(of: Preset, scale: Scale) -> tuple[Point, ...]:
    """Every training of a tutorial at one scale."""
    return policy.points_of(of.asked(scale, (Contender(),)))


def page_of(of: Tutorial, machine: Machine | None) -> None:
    """Draw one tutorial: its claim, what is expected, how to run it, and what came of it."""
    st.markdown(f"## {plain(of.of.title)}")
    st.markdown(f"> **It claims:** {plain(claim(of.of))}")
    st.caption(plain(f"Published by {of.of.source}. {of.of.note}"))
    ready = frame.expect(of.question)
    with st.container(border=True):
        st.markdown("**2 · Run**")
        scale, chosen = _run_settings(of.of, machine)
        asked, found = _asked(of.of, scale, chosen, machine)
    if ready:
        apart.draw(_see, of, scale, chosen, asked, found, machine)


def _see(
    of: Tutorial,
    scale: Scale,
    chosen: Sequence[str],
    asked: Task | None,
    found: Known | None,
    machine: Machine | None,
) -> None:
    built, rows, shown = _results(of, scale, chosen, asked, found, machine)
    frame.draw(built, memory.expected(of.question.name))
    st.page_link(
        navigation.LESSONS,
        label="Go deeper in a lesson",
        icon=":material/lightbulb:",
        query_params={"lesson": of.lesson},
    )
    frame.report(f"Tutorial: {of.of.title}", of.question, built, rows, shown)


def _run_settings(of: Preset, machine: Machine | None) -> tuple[Scale, list[str]]:
    left, right = st.columns(2, gap="medium")
    with left:
        chosen = st.segmented_control("Scale", list(SCALES), default="class", required=True, **state.bound("scale"))
        scale = checked_scale(chosen or "class")
        st.caption(plain(of.class_note if scale == "class" else f"The full scale: {SCALES['full']}."))
    with right:
        contenders = frame.devices(machine)
    st.caption(
        plain(f"{describe.sentence(of.at(scale), without=[axis.name for axis in of.axes_at(scale)])}{_axes(of, scale)}")
    )
    return scale, contenders


def _axes(of: Preset, scale: Scale) -> str:
    varied = [f"{axis.title} {', '.join(f'{value:,.0f}' for value in axis.values)}" for axis in of.axes_at(scale)]
    return f" · varied: {' × '.join(varied)}" if varied else ""


def _asked(
    of: Preset, scale: Scale, chosen: Sequence[str], machine: Machine | None
) -> tuple[Task | None, Known | None]:
    if machine is None:
        return None, None
    if len(chosen) < 2:
        st.warning("Two devices at least are needed to be set side by side.")
        return None, None
    try:
        asked = task(of, scale, chosen)
        found = tasks.known(asked, machine)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return None, None
    tasks.run_button(asked, found)
    if catalog.dataset(of.point.dataset).needs_files:
        title = catalog.dataset(of.point.dataset).title
        st.caption(plain(f"It needs the files of {title}. The lesson on the loader can do with digits, offline."))
    return asked, found


def _results(
    of: Tutorial,
    scale: Scale,
    chosen: Sequence[str],
    asked: Task | None,
    found: Known | None,
    machine: Machine | None,
) -> tuple[tuple[Section, ...], tuple[Trial, ...], tuple[Exhibit, ...]]:
    rows = found.rows.get(asked.asked[0].id, ()) if asked and found else ()
    live = found.exhibits.get(asked.asked[1].id) if asked and found else None
    alone = machine is None or len(machine.devices) == 1
    elsewhere = tasks.recorded_rows(points(of.of, scale), machine) if alone else ()
    replay = tasks.recorded_exhibit("clock", machine, claims.recipe_name(of.of)) if alone else None
    shown = tuple(entry for entry in (live, replay) if entry)
    key = (of.preset, scale, *chosen, tasks.content_key((*rows, *elsewhere), shown))
    built = frame.built(key, lambda: _sections(of, scale, chosen, rows, elsewhere, live, replay))
    return built, (*rows, *elsewhere), shown


def _sections(
    of: Tutorial,
    scale: Scale,
    chosen: Sequence[str],
    rows: Sequence[Trial],
    elsewhere: Sequence[Trial],
    live: Exhibit | None,
    replay: Exhibit | None,
) -> list[Section]:
    found = []
    if rows and len(chosen) > 1:
        pair = (chosen[0], chosen[-1])
        found.append(sections.compared(of.of, scale, rows, contenders=pair, origin="measured"))
    if elsewhere:
        pair = (elsewhere[0].contender, elsewhere[-1].contender)
        note = frame.recorded_note(None, elsewhere)
        found.append(sections.compared(of.of, scale, elsewhere, contenders=pair, origin="recorded", note=note))
    if not found:
        found.append(sections.published_only(of.of))
    if live:
        found.append(exhibit_sections.own_clock(of.of, live))
    if replay:
        again = exhibit_sections.own_clock(of.of, replay, note=frame.recorded_note(replay))
        found.append(dataclasses.replace(again, title=f"Recorded: {again.title}"))
    said = Section(title="What to make of it", sentences=(of.reading,))
    against = Section(title="Where it disagrees with itself, and what we follow", sentences=contradictions(of))
    return [*found, said, against]
