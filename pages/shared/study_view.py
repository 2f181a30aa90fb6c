"""A study of one size as pages show it: the question, the verdict, the crossover, its charts and its table of sizes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core import units
from core.answer import study as grouping
from core.answer import wording
from core.answer.result import BASES, BASIS_TITLES, Basis, Crossover, Size
from core.answer.study import Study
from core.errors import CrossoverError
from core.question import describe
from core.question.devices import capitalize_name, does
from core.question.experiment import Point
from core.question.fields import axis_title
from core.question.lanes import PLAIN
from core.question.models.boosting import field_of_answer_axis
from core.question.sweep import Sweep, size_on_axis
from core.results.schema import Trial
from pages.shared import charts, downloads, queries, session, tables
from pages.shared.queries import LocatedCrossover
from pages.shared.text import format_date, plain, show_errors


def draw_question(row: Trial, question: Point | Sweep | None, *, recalled: bool) -> None:
    """Draw what was asked, when and on what, as the newest row of the answer says it.

    Where there is no question, its rows ask for what this version does not offer.
    """
    said = describe.describe_question(question) if question else describe.describe_training(row)
    when = "Measured before, on" if recalled else "Measured on"
    st.caption(
        f"{plain(said)}  \n{when} {plain(format_date(row.started_at))} · {plain(row.cpu_name)} · "
        f"{plain(row.system)} · torch {plain(row.torch_version)}"
    )


def draw_verdict(claim: str, small_print: str, *, key: str, help: str) -> Any:
    """Draw a verdict in two lines, the claim and its small print; returns the place for what follows from it."""
    place = st.container(key=key)
    place.markdown(f"## {plain(claim)}")
    place.caption(plain(small_print), help=help)
    return place


BASIS_HELP = (
    "Steps only (`steady`): nothing else. With transfer (`with_transfer`): also copying the data to the device once. "
    "With start-up (`cold_start`): also the whole start-up in a fresh process. What is paid once "
    "is spread over the training that was asked for."
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
"""By outcome: the box around the sentence, and its icon."""


def pick_main_study(studies: Sequence[Study], request: Sweep | None) -> Study | None:
    """Of the studies of one sweep, the one of its baseline against its last contender, of plain ones if there are."""
    if request is not None:
        plain_ones = [contender for contender in request.contenders if contender.lane == PLAIN]
        contenders = plain_ones if len(plain_ones) > 1 else request.contenders
        pair = (str(contenders[0]), str(contenders[-1]))
        studies = [study for study in studies if (study.baseline, study.challenger) == pair] or studies
    return max(studies, key=lambda study: len(study.runs), default=None)


def choose_basis() -> Basis:
    bound = session.bind_choice("basis", list(BASES), "steady", BASIS_TITLES.__getitem__)
    return st.segmented_control("Cost basis", list(BASES), required=True, help=BASIS_HELP, **bound) or "steady"


def draw_crossover_answer(study: Study) -> tuple[Basis, LocatedCrossover | None]:
    """Draw the crossover in words and as a chart; the cost basis, and what was drawn if the rows can be compared."""
    answered, drawn = st.container(), st.container()
    own = bool(study.runs[0][0].training)  # of which nobody knows over how many steps what is paid once is spread
    chosen: Basis = "steady" if own else choose_basis()
    with show_errors(st.warning):
        located = queries.locate_crossover(study, chosen)
        with answered:
            draw_headline(located.answer)
            if means := queries.explain_crossover(study, chosen):
                st.markdown(plain(" ".join(means)))
        with drawn:
            draw_crossover_chart(located)
        st.caption(f"What is counted, {BASIS_TITLES[chosen]}: {BASES[chosen]}.")
        draw_study_downloads(located.chart, study, f"crossover-{study.id}-{chosen}", located.answer.sentence)
        return chosen, located
    return chosen, None


def draw_study_downloads(spec: dict[str, Any], study: Study, name: str, title: str) -> None:
    """Draw what downloads a chart of a study, which then says whose it is."""
    rows = [row for run in study.runs for row in run]
    downloads.draw_chart_downloads(spec, name, title=title, rows=rows, axis=study.axis)


def draw_headline(answer: Crossover) -> None:
    """The answer in the box of its outcome: the claim, then what else is to be said of it.

    What was measured on a busy machine is no good news.
    """
    box, icon = BOXES[answer.outcome]
    claim, stop, more = answer.sentence.partition(". ")
    said = f"**{plain(claim + stop.strip())}**" + (f"  \n{plain(more)}" if more else "")
    (st.warning if answer.busy else box)(said, icon=icon)


def draw_crossover_chart(located: LocatedCrossover) -> None:
    """Time against size, and what its crosses stand for."""
    names = f"{located.answer.baseline} and {located.answer.challenger}"
    alt = f"Time against {axis_title(located.answer.axis)} for {names}"
    charts.draw_chart(located.chart, alt=alt)
    if any(entry.obstacle for entry in located.evidence):
        st.caption("Crosses at the bottom are sizes that cannot be compared; the table says why.")


def draw_speedup_chart(located: LocatedCrossover) -> None:
    """Speedup against size, and what its band is."""
    st.markdown("**Speedup at each size**")
    charts.draw_chart(located.speedup, alt="Speedup against size")
    st.caption("The dotted line and its band are interpolated between the sizes; the verdicts are not.")


def draw_sizes_table(answer: Crossover, runs: Sequence[tuple[Trial, Trial]] = ()) -> None:
    """A line for each size: both times, the speedup with its interval if one is known, and the verdict in words."""
    threads = {
        size_on_axis(base, field_of_answer_axis(answer.axis)): (base.threads, other.threads) for base, other in runs
    }
    base, other = map(wording.short_device, (answer.baseline, answer.challenger))
    lines = [_make_size_line(size, answer, (base, other), threads.get(size.size)) for size in answer.sizes]
    known = {title for line in lines for title, value in line.items() if value != ""}
    rows = [{title: value for title, value in line.items() if title in known} for line in lines]
    tables.draw_table(
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
    """Why the slower device is slower at the measured size just below the crossing, if its step was taken apart."""
    known = grouping.study_cause(study, answer)
    if known:
        where = f"{axis_title(answer.axis)} {wording.format_size(known[0])}"
        st.markdown(f"**Why, at {plain(where)}:** {plain(known[1])}")


def draw_bases_table(columns: Mapping[str, Callable[[Basis], LocatedCrossover]], axis: str, alt: str) -> None:
    """The crossover on each cost basis, of what is compared in words → its answer on a basis."""
    lines = [
        {
            "Cost basis": BASIS_TITLES[basis],
            **{words: summarize_located(partial(found, basis)) for words, found in columns.items()},
        }
        for basis in BASES
    ]
    st.markdown(f"**Crossover on each cost basis**, {plain(axis_title(axis))} with its 95 % interval")
    tables.draw_table(lines, alt=alt)


def summarize_located(locate: Callable[[], LocatedCrossover]) -> str:
    """An answer in as many words as a table has room for, or why there is none."""
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
        "Verdict": _say_size_verdict(size, names),
    }
    if threads:
        line["Threads"] = " and ".join(str(count) for count in threads)
    return line


def _say_size_verdict(size: Size, names: tuple[str, str]) -> str:
    if size.verdict == "missing" or size.speedup is None:
        return f"Not known: {size.reason}"
    if size.verdict == "too_close":
        return f"Too close: {size.reason}"
    return capitalize_name(f"{does(names[1] if size.speedup > 1 else names[0], 'is', 'are')} faster")


def title_size(answer: Crossover) -> str:
    return axis_title(answer.axis).capitalize()


MAX_SIZE_LINES = 20
"""Lines of a table before it scrolls."""
