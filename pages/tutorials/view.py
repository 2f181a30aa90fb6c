"""The four tutorials: the claim of each, its contradictions, and a lesson on it.

All numbers come from `core.question.published`, the presets or rows; none is written in this module.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core import units
from core.answer.charts import lesson_charts
from core.answer.export import sections
from core.answer.lessons import outcomes, tutorials
from core.answer.lessons.outcomes import Section
from core.errors import require_choice
from core.files import sources
from core.jobs.machine import Machine
from core.question import catalog, describe, policy
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender
from core.question.presets import PRESETS, SCALES, Preset, Scale
from core.question.published import list_published
from core.question.sweep import vary
from pages.shared import elements, layout, learning, session
from pages.shared.elements import plain, show_errors
from pages.shared.layout import Sides
from pages.shared.learning import Expectation, Task, TaskAnswers, TaskResults

CLOCK_S: dict[Scale, float] = {"class": 20.0, "full": 300.0}
"""Time limit for the comparison with the tutorial's own clock."""

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
        contradicts: where its text and its code, or its figure, disagree, and which of them is followed.
        reading: advice on how to read the measurement, in one or two sentences.
        lesson: the lesson that goes deeper.
    """

    preset: Preset
    question: Expectation
    contradicts: tuple[str, ...]
    reading: str
    lesson: str


def _expect_threshold(name: str, title: str, places: Sequence[float], after: str) -> Expectation:
    options = (f"at every {title}", *(f"from {title} {place:,.0f} on" for place in places[1:]), f"at no {title}")
    return Expectation(
        name=name, text=f"From which {title} on will the second device be faster here?", options=options, after=after
    )


def _expect_amount(name: str, after: str) -> Expectation:
    text = "How fast will the second device be here per epoch, compared with the first?"
    return Expectation(name=name, text=text, options=FASTER, after=after)


TUTORIALS: dict[str, Tutorial] = {
    entry.preset.name: entry
    for entry in (
        Tutorial(
            preset=PRESETS["disc"],
            question=_expect_threshold(
                "disc",
                "depth",
                PRESETS["disc"].axes_at_scale("class")[0].values,
                "Why are the curves flat for shallow networks and rising for deep ones?",
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
            preset=PRESETS["signal"],
            question=_expect_threshold(
                "signal",
                "hidden size",
                PRESETS["signal"].axes_at_scale("class")[0].values,
                "The published lines cross somewhere else than the text says. Why does the figure mislead?",
            ),
            contradicts=(),
            reading="The published times come from a table that is not public, and the length of the training is not"
            " reported. So seconds cannot be compared, but the speedup at each size can.",
            lesson="clock",
        ),
        Tutorial(
            preset=PRESETS["mnist-linear"],
            question=_expect_amount("mnist-linear", "What keeps the faster device waiting in this training?"),
            contradicts=(
                "The tutorial explains its result by the small amount of data. The parts of an epoch, measured in the"
                " lesson on the loader, give another cause: samples that are transformed one by one.",
            ),
            reading="Here an epoch is the training alone. The tutorial's clock also includes validation and test;"
            " the page shows both.",
            lesson="loader",
        ),
        Tutorial(
            preset=PRESETS["fashion-cnn"],
            question=_expect_amount(
                "fashion-cnn", "In which cell of the grid does the second device gain most, and why?"
            ),
            contradicts=(),
            reading="Each published cell is one epoch of one run. Before you rank the cells, look at their"
            " differences and at the intervals.",
            lesson="loader",
        ),
    )
}


def state_claim(preset: Preset) -> str:
    """Return the claim of a tutorial in one sentence, with its published numbers."""
    wins = list_published(preset.name, "wins_from")
    speedups = list_published(preset.name, "speedup")
    if preset.name == "disc":
        parameters = vary(preset.point, {"depth": int(wins[0].value)}).network.parameters
        return (
            f"A GPU pays off only for a network that is large enough: from {wins[0].value:.0f} layers on "
            f"({units.format_count(parameters)} parameters)."
        )
    if preset.name == "signal":
        return (
            f"With two hidden layers of equal size the GPU wins from {units.format_count(int(wins[0].value))} "
            "neurons each, "
            f"and at {units.format_count(int(speedups[0].size or 0))} it is about {speedups[0].value:g}× as fast."
        )
    if preset.name == "mnist-linear":
        return "Training on the GPU takes as long as on the CPU here, and the test accuracy is the same on both."
    gain = speedups[0].value
    return f"Over a grid of batch sizes and loader workers the GPU always comes first, about {gain:g}× as fast."


def list_contradictions(tutorial: Tutorial) -> tuple[str, ...]:
    """Return the contradictions of the tutorial, and the parts that the settings leave out."""
    if tutorial.preset.name != "signal":
        stands_in = tutorial.preset.point.dataset != PRESETS[tutorial.preset.name].point.dataset  # note already shown
        return tutorial.contradicts if stands_in else (*tutorial.contradicts, tutorial.preset.note)
    times = {(entry.device, entry.size): entry.value for entry in list_published("signal", "seconds")}
    sizes = sorted({size for _, size in times if size is not None})
    below = max(size for size in sizes if times["cpu", size] < times["gpu", size])
    above = min(size for size in sizes if times["cpu", size] > times["gpu", size])
    wins = int(list_published("signal", "wins_from")[0].value)
    said = (
        f"The text says that the GPU wins from {units.format_count(wins)} neurons on. The published times change sides"
        f" between {units.format_count(int(below))} and {units.format_count(int(above))}: the"
        " figure's x-axis is not to scale. We show the times on a log scale."
    )
    return (said, tutorial.preset.note)


def draw_tutorial(name: str, machine: Machine | None, places: Sides) -> None:
    """Draw one tutorial: files, prediction and settings on the left, results on the right."""
    tutorial = TUTORIALS[name]
    preset = tutorial.preset
    with places.settings:
        st.markdown(f"## {plain(preset.title)}")
        preset = _choose_data(preset)
        st.caption(plain(f"Published by {preset.source}. {tutorial.preset.note}"))
        said = learning.ask_expectation(tutorial.question)
        st.markdown("### 2 · Run")
        scale, chosen = _choose_run_settings(preset, machine)
    known, running = _draw_tutorial_task(preset, scale, chosen, machine, places)
    with places.answer:
        ran = bool(known and (known.rows or known.exhibits))
        if learning.can_see_outcome(
            tutorial.question,
            has_expectation=said,
            ran=ran,
            running=running,
            show=lambda: _draw_covered_picture(preset, scale),
        ):
            layout.draw_isolated(
                _draw_tutorial_outcome, dataclasses.replace(tutorial, preset=preset), scale, chosen, known, machine
            )


def _draw_covered_picture(preset: Preset, scale: Scale) -> None:
    """Draw the published CPU times and the sizes to train; the GPU times stay hidden, as they answer the question."""
    covered = tutorials.cover_published(preset, scale)
    if covered is not None:
        st.markdown("**The published times of the CPU.** The GPU is covered until you predict.")
        alt = f"Published time of one {covered.per} on the CPU; the GPU is covered"
        elements.draw_chart(lesson_charts.tutorial_times_chart(covered), alt=alt)
    if preset.axes:
        st.markdown("**Sizes to train**")
        elements.draw_table(_list_trained_sizes(preset, scale), alt="Sizes that are trained, with their parameters")


def _list_trained_sizes(preset: Preset, scale: Scale) -> list[dict[str, str]]:
    axes, point = preset.axes_at_scale(scale), preset.point_at_scale(scale)
    return [
        {
            **{axis.title.capitalize(): units.format_count(int(size)) for axis, size in zip(axes, sizes, strict=True)},
            "Parameters": units.format_count(
                vary(point, {axis.name: size for axis, size in zip(axes, sizes, strict=True)}).network.parameters
            ),
            "CPU": "?",
            "GPU": "?",
        }
        for sizes in itertools.product(*(axis.values for axis in axes))
    ]


def _lacks_files(preset: Preset) -> bool:
    """Return whether the data of a tutorial must be downloaded before it can run."""
    dataset = preset.point.dataset
    return catalog.dataset(dataset).needs_files and not sources.complete(dataset)


def _choose_data(preset: Preset) -> Preset:
    """Draw the choice of data if the tutorial's own need a download; return the training on the chosen data."""
    dataset = preset.point.dataset
    if not catalog.dataset(dataset).needs_files:
        return preset
    missing = st.container()
    if st.toggle("Use digits instead, which need no download", **session.bind_control("digits")):
        digits = preset.on_digits()
        st.caption(plain(digits.note))
        return digits
    if _lacks_files(preset):
        name, files = plain(catalog.dataset(dataset).called), plain(", ".join(sources.FILES))
        missing.info(
            f"{name} is not on this machine yet. Without a network, put its four files ({files}) into the folder "
            "below, or use digits.",
            icon=":material/folder:",
        )
        missing.code(str(sources.locate_dataset(dataset)), language=None, wrap_lines=True)
    return preset


def _draw_tutorial_outcome(
    tutorial: Tutorial, scale: Scale, chosen: Sequence[str], answers: TaskAnswers | None, machine: Machine | None
) -> None:
    preset = tutorial.preset
    points = policy.question_points(preset.build_question(scale, (Contender(),)))
    found = learning.collect_results(answers, points, machine, [("clock", preset.name)])
    outcome = found.find_outcome(
        lambda rows, _, pair: outcomes.tutorial_outcome(preset, rows, pair), (chosen[0], chosen[-1])
    )
    key = (preset.name, preset.point.dataset, scale, *chosen, found.key)
    built = learning.build_sections(key, lambda: _make_tutorial_sections(tutorial, scale, chosen, found))
    learning.draw_sections(
        *(built, tutorial.question, outcome),
        why=f"{tutorial.reading} The tutorial claims: {state_claim(tutorial.preset)}",
    )
    st.page_link(
        layout.LESSONS,
        label="Go deeper in a lesson",
        icon=":material/lightbulb:",
        query_params={"lesson": tutorial.lesson},
    )
    learning.draw_report(f"Tutorial: {preset.title}", tutorial.question, built, found, outcome)


def _choose_run_settings(preset: Preset, machine: Machine | None) -> tuple[Scale, list[str]]:
    bound = session.bind_choice("scale", list(SCALES), "class", str.capitalize)
    chosen = st.segmented_control("Scale", list(SCALES), required=True, **bound)
    scale = require_choice("scale", chosen or "class", SCALES)
    st.caption(plain(preset.class_note if scale == "class" else f"The full scale: {SCALES['full']}."))
    contenders = learning.choose_learning_devices(machine)
    axes = preset.axes_at_scale(scale)
    varied = [f"{axis.title} {', '.join(f'{value:,.0f}' for value in axis.values)}" for axis in axes]
    said = describe.describe_question(preset.point_at_scale(scale), without=[axis.name for axis in axes])
    st.caption(plain(f"{said} · varied: {' × '.join(varied)}" if varied else said))
    return scale, contenders


def _draw_tutorial_task(
    preset: Preset, scale: Scale, chosen: Sequence[str], machine: Machine | None, places: Sides
) -> tuple[TaskAnswers | None, bool]:
    """Draw the button that measures the sweep or the training, and the tutorial's own clock.

    Returns:
        The stored results, and whether they are being measured.
    """
    if machine is None:
        with places.ask:
            learning.draw_waiting_button()
        return None, False
    if len(chosen) < 2:
        places.ask.warning("At least two devices are needed for a comparison.")
        return None, False
    with places.ask, show_errors():
        devices = tuple(Contender.parse(text) for text in chosen)
        clock = Demonstration(
            kind="clock",
            point=preset.point_at_scale(scale),
            contenders=(devices[0], devices[-1]),
            budget_s=CLOCK_S[scale],
            recipes=(preset.name,),
        )
        task: Task = (preset.build_question(scale, devices), clock)
        known = learning.find_answers(task, machine)
        if _lacks_files(preset):
            name = plain(catalog.dataset(preset.point.dataset).called)
            st.caption(f"Run downloads {name} first; digits need no network.")
        return known, learning.draw_task_button(task, known, places.answer)
    return None, False


def _make_tutorial_sections(
    tutorial: Tutorial, scale: Scale, chosen: Sequence[str], results: TaskResults
) -> list[Section]:
    preset, made = tutorial.preset, []
    if results.rows and len(chosen) > 1:
        pair = (chosen[0], chosen[-1])
        made.append(sections.tutorial_section(preset, scale, results.rows, contenders=pair, origin="measured"))
    if rows := results.recorded_rows:
        pair, note = (rows[0].contender, rows[-1].contender), learning.describe_recording(None, rows)
        made.append(sections.tutorial_section(preset, scale, rows, contenders=pair, origin="recorded", note=note))
    if not made:
        made.append(Section(title="Published", sentences=tutorials.claim_sentences(preset)))
    made += [sections.tutorial_clock_section(preset, shown) for shown in results.shown]
    again = [
        sections.tutorial_clock_section(preset, shown, learning.describe_recording(shown)) for shown in results.recorded
    ]
    said = Section(title="How to read it", sentences=(tutorial.reading,))
    made += [*learning.mark_recorded(again), said]
    if against := list_contradictions(tutorial):
        made.append(Section(title="Differences from the published setup", sentences=against))
    return made
