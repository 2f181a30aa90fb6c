"""A study of one size as pages show it: the question, the verdict, the crossover, its charts and its table of sizes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core import units
from core.answer import wording
from core.answer.judgement import BASES, BASIS_TITLES, Basis, Crossover, Size
from core.answer.study import Study
from core.answer.verdict import Verdict
from core.errors import CrossoverError
from core.question import describe
from core.question.experiment import Point
from core.question.fields import axis_title
from core.question.lanes import PLAIN
from core.question.models.families import field_of_answer_axis
from core.question.sweep import Sweep, size_on_axis
from core.results.schema import Trial
from pages.shared import elements, queries, session
from pages.shared.elements import format_date, plain, show_errors
from pages.shared.queries import LocatedCrossover


def draw_question(row: Trial, question: Point | Sweep | None, *, recalled: bool) -> None:
    """Draw the question with its date and machine, from the newest row of the answer.

    The question is None if this version does not support the settings of its rows.
    """
    said = describe.describe_question(question) if question else describe.describe_training(row)
    when = "Measured before, on" if recalled else "Measured on"
    st.caption(
        f"{plain(said)}  \n{when} {plain(format_date(row.started_at))} · {plain(row.cpu_name)} · "
        f"{plain(row.system)} · torch {plain(row.torch_version)}"
    )


def draw_verdict(verdict: Verdict, *, key: str, help: str) -> Any:
    """Draw a verdict in two lines, the claim and its basis; return the place for further text."""
    place = st.container(key=key)
    place.markdown(f"## {plain(verdict.claim)}")
    place.caption(plain(verdict.basis), help=help)
    return place


BASIS_LABEL = "Costs to include"
BASIS_HELP = (
    "Steps only (`steady`): training steps alone. With transfer (`with_transfer`): also copying the data to the device "
    "once. With start-up (`cold_start`): also the whole start-up in a fresh process. One-time costs "
    "are divided by the requested number of steps."
)

Box = Callable[..., Any]
BOXES: dict[str, tuple[Box, str]] = {
    "crossing": (st.success, ":material/balance:"),
    "gpu_always": (st.info, ":material/bolt:"),
    "cpu_always": (st.info, ":material/memory:"),
    "several": (st.warning, ":material/swap_vert:"),
    "undecided": (st.warning, ":material/help:"),
    "not_measurable": (st.warning, ":material/block:"),
}
"""Box around the sentence and its icon, by outcome."""


def pick_main_study(studies: Sequence[Study], request: Sweep | None) -> Study | None:
    """Return the study of the baseline against the last contender of a sweep, of default variants if possible."""
    if request is not None:
        plain_ones = [contender for contender in request.contenders if contender.lane == PLAIN]
        contenders = plain_ones if len(plain_ones) > 1 else request.contenders
        pair = (str(contenders[0]), str(contenders[-1]))
        studies = [study for study in studies if (study.baseline, study.challenger) == pair] or studies
    return max(studies, key=lambda study: len(study.runs), default=None)


def choose_basis() -> Basis:
    bound = session.bind_choice("basis", list(BASES), "steady", BASIS_TITLES.__getitem__)
    return st.segmented_control(BASIS_LABEL, list(BASES), required=True, help=BASIS_HELP, **bound) or "steady"


def draw_crossover_answer(study: Study) -> tuple[Basis, LocatedCrossover | None]:
    """Draw the crossover in words and as a chart, and the cost basis; return the answer if rows are comparable."""
    answered, drawn = st.container(), st.container()
    own = bool(study.runs[0][0].training)  # its number of steps is unknown, so one-time costs cannot be divided
    chosen: Basis = "steady" if own else choose_basis()
    with show_errors(st.warning):
        located = queries.locate_crossover(study, chosen)
        with answered:
            draw_headline(located.answer)
            if means := queries.explain_crossover(study, chosen):
                st.markdown(plain(" ".join(means)))
        with drawn:
            draw_crossover_chart(located)
        st.caption(f"Included ({BASIS_TITLES[chosen]}): {BASES[chosen]}.")
        draw_study_downloads(located.chart, study, f"crossover-{study.id}-{chosen}", located.answer.sentence)
        return chosen, located
    return chosen, None


def draw_study_downloads(spec: dict[str, Any], study: Study, name: str, title: str) -> None:
    """Draw the download of a chart of a study, with a caption that describes the study."""
    rows = [row for run in study.runs for row in run]
    elements.draw_chart_downloads(spec, name, title=title, rows=rows, axis=study.axis)


def draw_headline(answer: Crossover) -> None:
    """Draw the answer in the box of its outcome: the claim first, then further sentences.

    A result of a busy machine gets a warning box, not a success box.
    """
    box, icon = BOXES[answer.outcome]
    claim, stop, more = answer.sentence.partition(". ")
    said = f"**{plain(claim + stop.strip())}**" + (f"  \n{plain(more)}" if more else "")
    (st.warning if answer.busy else box)(said, icon=icon)


def draw_crossover_chart(located: LocatedCrossover) -> None:
    """Draw time against size, and explain its crosses."""
    names = f"{located.answer.baseline} and {located.answer.challenger}"
    alt = f"Time against {axis_title(located.answer.axis)} for {names}"
    elements.draw_chart(located.chart, alt=alt)
    if any(entry.obstacle for entry in located.evidence):
        st.caption("Crosses at the bottom are sizes that cannot be compared; the table says why.")


def draw_speedup_chart(located: LocatedCrossover) -> None:
    """Draw speedup against size, and explain its band."""
    st.markdown("**Speedup at each size**")
    elements.draw_chart(located.speedup, alt="Speedup against size")
    st.caption("The dotted line and its band are interpolated between the sizes. Verdicts are not.")


def draw_sizes_table(answer: Crossover, runs: Sequence[tuple[Trial, Trial]] = ()) -> None:
    """Draw a line for each size: both times, the speedup with its interval if known, and the verdict in words."""
    threads = {
        size_on_axis(base, field_of_answer_axis(answer.axis)): (base.threads, other.threads) for base, other in runs
    }
    base, other = map(wording.short_device, (answer.baseline, answer.challenger))
    lines = [_make_size_line(size, answer, (base, other), threads.get(size.size)) for size in answer.sizes]
    known = {title for line in lines for title, value in line.items() if value != ""}
    rows = [{title: value for title, value in line.items() if title in known} for line in lines]
    elements.draw_table(
        rows,
        height="content" if len(rows) <= MAX_SIZE_LINES else 35 * MAX_SIZE_LINES,
        column_config={
            title_size(answer): st.column_config.NumberColumn(format="localized"),
            "Verdict": st.column_config.TextColumn(width="large"),
        },
        alt="The verdict at each size",
    )


@show_errors(st.caption)
def draw_cause(study: Study, answer: Crossover) -> None:
    """Draw why the slower device is slower at the measured size below the crossing, if its step was profiled."""
    known = study.cause(answer)
    if known:
        where = f"{axis_title(answer.axis)} {wording.format_size(known[0])}"
        st.markdown(f"**Why, at {plain(where)}:** {plain(known[1])}")


def draw_bases_table(columns: Mapping[str, Callable[[Basis], LocatedCrossover]], axis: str, alt: str) -> None:
    """Draw the crossover on each cost basis; `columns` maps a title to the function that finds the crossover."""
    lines = [
        {
            BASIS_LABEL: BASIS_TITLES[basis],
            **{words: summarize_located(partial(found, basis)) for words, found in columns.items()},
        }
        for basis in BASES
    ]
    st.markdown(f"**Crossover on each cost basis**, {plain(axis_title(axis))} with its 95 % interval")
    elements.draw_table(lines, alt=alt)


def summarize_located(locate: Callable[[], LocatedCrossover]) -> str:
    """Return an answer, or why there is none, short enough for a table."""
    try:
        answer = locate().answer
    except CrossoverError as error:
        return str(error)
    return _summarize_crossover(answer) + (", on a busy machine" if answer.busy else "")


def _summarize_crossover(answer: Crossover) -> str:
    base, other = map(wording.short_device, (answer.baseline, answer.challenger))
    if answer.estimate is not None and answer.low is not None and answer.high is not None:
        estimate = wording.nearest_size(answer.axis, answer.estimate)
        return f"{estimate} ({' to '.join(wording.interval_ends(answer.axis, answer.low, answer.high))})"
    words = {"gpu_always": f"{other} at every size", "cpu_always": f"{base} at every size"}
    words |= {"several": "several crossings"}
    return words.get(answer.outcome, answer.outcome.replace("_", " "))


def _make_size_line(
    size: Size, answer: Crossover, names: tuple[str, str], threads: tuple[int, int] | None
) -> dict[str, Any]:
    line: dict[str, Any] = {
        title_size(answer): size.size if size.size % 1 else int(size.size),
        f"Time, {names[0]}": units.format_if_known(size.baseline_s, units.format_duration),
        f"Time, {names[1]}": units.format_if_known(size.challenger_s, units.format_duration),
        "Speedup": units.format_if_known(size.speedup, units.format_ratio),
        f"{100 * answer.level:.3g} % interval": units.format_interval(
            size.low or None, size.high or None, units.format_ratio
        ),
        "Pairs" if threads else "Readings": size.readings,
        "Verdict": wording.size_verdict_text(size, answer),
    }
    if threads:
        line["Threads"] = " and ".join(str(count) for count in threads)
    return line


def title_size(answer: Crossover) -> str:
    return axis_title(answer.axis).capitalize()


MAX_SIZE_LINES = 20
"""Number of lines of a table before it scrolls."""
