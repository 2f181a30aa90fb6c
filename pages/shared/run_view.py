"""One run as an answer: the verdict on top, then why, then everything it rests on, and how to take it along.

Draws what `core.answer` says and decides nothing. Whatever a row's file wrote (names, messages) is shown as plain text.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core import units
from core.answer import causes, claims, custom_findings, two_machines
from core.answer.charts import run_charts
from core.answer.run import PairAnswer, RowAnswer, RunAnswer
from core.answer.speedup import is_host
from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question.defaults import LOOKS
from core.question.experiment import EVERY_EPOCH, Contender, Experiment, Point, display_name
from core.results.schema import OUTCOMES, Trial
from pages.shared import (
    accelerators_view,
    charts,
    downloads,
    expectations,
    links,
    queries,
    remedies_view,
    session,
    study_view,
    tables,
)
from pages.shared.text import plain, show_errors

MAX_SIDE_BY_SIDE = 2
"""Reports beside each other, whose five columns are whole; more begin a new row."""


def draw_run(
    trials: Sequence[Trial],
    recorded: Sequence[Trial] = (),
    machine: Machine | None = None,
    onwards: Callable[[], None] = lambda: None,
) -> None:
    """Draw the rows of one run, in the order of its contenders; what rows from elsewhere do not allow is said.

    Recorded rows of other machines' accelerators stand beside it; on this machine what would help may be measured too.
    `onwards` draws what can be asked next, below the verdict.
    """
    run = RunAnswer(trials)
    everything = [*trials, *map(two_machines.label_recording, recorded)]
    rows = [*run.rows, *map(RowAnswer, everything[len(trials) :])]
    sections: tuple[Callable[[], None], ...] = (
        lambda: accelerators_view.draw_recorded_verdicts(trials, recorded),
        lambda: _draw_verdicts(run, everything),
        onwards,
        lambda: _draw_contenders_table(rows),
        lambda: None if causes.is_fit(trials[0]) else remedies_view.draw_remedies(run, machine),
        lambda: _draw_training(rows, note=accelerators_view.describe_chart_machines(trials, recorded)),
        lambda: _draw_breakdown(run, rows),
        lambda: draw_learning(everything),
        lambda: _draw_raw_values(run),
        lambda: _draw_run_downloads(trials),
    )
    for section in sections:
        with show_errors(st.warning):
            section()


def make_run_question(trials: Sequence[Trial]) -> Experiment | None:
    """The question that a run answers; None where its rows ask for what this version does not offer."""
    first = trials[0]
    try:
        point = Point.from_row(first)
        contenders = tuple(Contender.parse(trial.contender) for trial in trials)
        timed, pairs = first.outcome == "timed", len(first.block_pair)
        few = pairs if timed and pairs < LOOKS[0] else EVERY_EPOCH
        return Experiment(
            point=point, contenders=contenders, budget_s=first.budget_s, pairs=few, whole=not timed or few > 0
        )
    except InvalidValue:
        return None


def draw_run_heading(trials: Sequence[Trial]) -> None:
    asked = make_run_question(trials)
    study_view.draw_question(trials[0], asked.point if asked else None, recalled=session.is_recalled(trials[0].run_id))


def _sort_pairs(run: RunAnswer) -> list[PairAnswer]:
    """Accelerators first: they are what one came for."""
    return sorted(run.pairs, key=lambda pair: is_host(pair.challenger))


def _drop_lane_pairs(run: RunAnswer) -> list[PairAnswer]:
    """The pairs without lanes that are told of beside the plain steps of their device."""
    return [pair for pair in _sort_pairs(run) if not remedies_view.is_remedy_row(pair.challenger, run.trials)]


def _draw_verdicts(run: RunAnswer, everything: Sequence[Trial]) -> None:
    """Every verdict in two lines, a bar a device, the recorded ones too, and the causes."""
    pairs = _drop_lane_pairs(run)
    for pair in pairs:
        key = f"verdict-{pair.challenger.trial_id}"
        words = study_view.draw_verdict(
            claims.speedup_headline(pair.speedup), claims.speedup_small_print(pair.speedup), key=key, help=SPEEDUP_HELP
        )
        if said := expectations.compare_with_expectation(pair.baseline, pair.challenger, pair.speedup.value):
            words.caption(plain(said))
    if any(trial.step_s for trial in run.trials):
        _draw_titled_chart(None, run_charts.step_bars_chart, everything, "", "Time of a step by device")
    for pair in pairs:
        if pair.speedup.verdict != "missing":
            st.markdown(plain(pair.cause))


def _draw_contenders_table(rows: Sequence[RowAnswer]) -> None:
    lines = [_make_contender_line(row) for row in rows]
    empty = dict.fromkeys((title for line in lines for title in line), "")
    tables.draw_table([{**empty, **line} for line in lines], alt="The devices side by side")
    ended: dict[str, list[str]] = {}
    for trial in (row.row for row in rows):
        as_asked = ("completed", "timed") if trial.training else ("completed",)
        if trial.outcome not in as_asked or trial.message:
            ended.setdefault(trial.message or OUTCOMES[trial.outcome], []).append(display_name(trial.contender))
    for said, names in ended.items():
        of_some = f"{'; '.join(names)}: " if len(names) < len(rows) else ""
        st.caption(plain(of_some + (said if of_some else f"{said[:1].upper()}{said[1:]}") + "." * (said[-1:] != ".")))


def _make_contender_line(answer: RowAnswer) -> dict[str, str]:
    """A row of the table: times first, which a phone shows without scrolling, and names, which may be long, last."""
    trial, step = answer.row, answer.step
    learned = {"Test accuracy": answer.accuracy_shown}
    epoch = {"Epoch": units.format_if_known(answer.median_epoch_s, units.format_duration)}
    return {
        "Device": display_name(trial.contender),
        "Fit" if causes.is_fit(trial) else "Step": units.format_if_known(step.median_s, units.format_duration),
        "95 % interval": units.format_interval(step.low_s, step.high_s, units.format_duration),
        "Noise": units.format_if_known(step.noise, units.format_share),
        **({} if trial.training or causes.is_fit(trial) else epoch),
        "Start-up": units.format_if_known(answer.startup_s, units.format_duration),
        **(custom_findings.custom_facts(trial) if trial.training else learned),
        "Threads": str(trial.threads or ""),
        "Name": trial.device_name,
    }


def _draw_training(rows: Sequence[RowAnswer], note: str) -> None:
    trials = [row.row for row in rows]
    if not any(trial.loss for trial in trials):
        return
    st.header("Training")
    if causes.is_fit(trials[0]):
        st.markdown(plain(causes.fit_losses_sentence(trials)))
        return
    if trials[0].training:
        _draw_titled_chart(
            None, run_charts.loss_over_time_chart, trials, "Loss over time", "Training loss against time of training"
        )
        st.caption("Read between the blocks. Each device built it anew, with the same seed.")
        return
    left, right = st.columns(2, gap="medium")
    _draw_titled_chart(
        left, run_charts.loss_over_time_chart, trials, "Loss over time", "Training loss against time of training"
    )
    if any(row.epoch_s for row in rows):
        _draw_titled_chart(
            right, run_charts.epoch_times_chart, trials, "Time of each epoch", "Time of each epoch by device"
        )
    else:
        right.caption("No epoch was trained to its end.")
    if note:
        st.caption(plain(note))
    with st.expander("Loss over epochs", **session.bind_view("loss")) as part:
        if part.open:
            st.caption("Same weights, same batches: over epochs the curves should lie on each other.")
            _draw_titled_chart(None, run_charts.loss_over_epochs_chart, trials, "", "Training loss against epochs")


def _draw_breakdown(run: RunAnswer, rows: Sequence[RowAnswer]) -> None:
    st.header("Where the time goes")
    left, right = st.columns(2, gap="medium")
    everything = [row.row for row in rows]
    if any(row.times for row in rows):
        _draw_titled_chart(left, run_charts.breakdown_chart, everything, "One step", "Time per step by part")
    else:
        left.caption(causes.PIECE if causes.is_fit(everything[0]) else "No breakdown was measured.")
    for row in rows:
        if row.why_no_breakdown:
            left.caption(plain(row.why_no_breakdown))
    if any(trial.startup_build_s is not None for trial in everything):
        _draw_titled_chart(right, run_charts.startup_chart, everything, "Start-up, once", "Start-up by part")
    if everything[0].training:
        _draw_step_findings(
            everything,
            is_described=any(
                custom_findings.NOTHING_ODD in pair.cause for pair in run.pairs if pair.speedup.verdict != "missing"
            ),
        )
    for pair in _drop_lane_pairs(run):
        _draw_sentence(lambda pair: pair.break_even.sentence, pair)


def _draw_step_findings(trials: Sequence[Trial], *, is_described: bool) -> None:
    """What stands out in the steps of one's own training, a line each, and what is not known of them.

    That nothing does may be `is_described` already, as what decides.
    """
    said = custom_findings.oddity_sentences(trials)
    for sentence in said:
        st.markdown(f"- {plain(sentence)}")
    if not said and not is_described:
        st.markdown("Nothing stands out in what can be seen of its steps from outside.")
    for sentence in dict.fromkeys(map(custom_findings.unknown_facts_sentence, trials)):
        st.caption(plain(sentence))


def draw_learning(trials: Sequence[Trial]) -> None:
    """What the devices learned, and whether it is the same."""
    tested = RunAnswer([trial for trial in trials if trial.confusion])
    if not tested.rows:
        return
    st.header("What was learned")
    for pair in _sort_pairs(tested):
        _draw_sentence(lambda pair: pair.agreement.sentence if pair.agreement else "", pair)
    beside = min(MAX_SIDE_BY_SIDE, len(tested.rows))
    for begin in range(0, len(tested.rows), beside):
        group = tested.rows[begin : begin + beside]
        for column, answer in zip(st.columns(beside, gap="medium"), group, strict=False):
            with column:
                st.markdown(f"**{plain(answer.label)}**")
                _draw_class_report(answer.row)
    with st.expander("Reports as text", **session.bind_view("reports")) as part:
        for answer in tested.rows if part.open else ():
            st.markdown(f"**{plain(answer.label)}**")
            st.code(answer.classification_text, language=None)


def _draw_class_report(trial: Trial) -> None:
    report, matrix = queries.make_class_report(trial), queries.make_chart(run_charts.confusion_chart, trial)
    tables.draw_table(
        _make_report_rows(report or {}),
        height="content",
        column_config={"class": st.column_config.TextColumn(width=100)},
        alt=f"Classification report of {display_name(trial.contender)}",
    )
    charts.draw_chart(matrix, height=None, alt=f"Confusion matrix of {display_name(trial.contender)}")


def _make_report_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, figures in report.items():
        if isinstance(figures, dict):
            shown = {figure: f"{figures[figure]:.3f}" for figure in ("precision", "recall", "f1-score")}
            rows.append({"class": name, **shown, "support": int(figures["support"])})
    return rows


def _draw_raw_values(run: RunAnswer) -> None:
    if any(trial.block_steps for trial in run.trials):
        with st.expander("How it was measured", **session.bind_view("blocks")) as part:
            if part.open:
                _draw_protocol(run)


def _draw_protocol(run: RunAnswer) -> None:
    _draw_titled_chart(
        None, run_charts.blocks_chart, run.trials, "Every timed block", "Time per step of every timed block"
    )
    for answer in run.rows:
        if not answer.row.training:
            st.caption(plain(answer.epoch_check))
        if answer.parts:
            st.caption(plain(answer.parts.excess_sentence))
        if answer.row.threads_tried:
            st.caption(plain(_describe_tried_threads(answer.row)))


def _describe_tried_threads(trial: Trial) -> str:
    tried = zip(trial.threads_tried, trial.threads_tried_step_s, strict=False)
    listed = ", ".join(f"{threads}: {units.format_duration(step_s)}" for threads, step_s in tried)
    return (
        f"Threads tried for {display_name(trial.contender)}, with their step: {listed}; {trial.threads} took the least."
    )


def _draw_run_downloads(trials: Sequence[Trial]) -> None:
    st.header("Take it along")
    run_id = trials[0].run_id
    downloads.draw_row_downloads(trials, name=f"crossover-{run_id}", repeats=True)
    asked = make_run_question(trials)
    downloads.draw_command(asked, "run")
    if asked:
        link = {**links.make_run_link(asked), **session.make_accelerator_link(), "run": run_id}
        downloads.draw_link("Link to this result and its settings:", link)


def _draw_titled_chart(
    place: Any, make: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial], title: str, alt: str
) -> None:
    """A chart below its title; bars know their own height, curves get one to read values from."""
    target = place if place is not None else st
    if title:
        target.markdown(f"**{title}**")
    height: Any = (
        "content"
        if make in (run_charts.step_bars_chart, run_charts.breakdown_chart, run_charts.startup_chart)
        else CURVE_HEIGHT
    )
    charts.draw_chart(queries.make_chart(make, trials), place=target, height=height, alt=alt)


def _draw_sentence(sentence: Callable[[PairAnswer], str], pair: PairAnswer) -> None:
    with show_errors(st.markdown):
        st.markdown(plain(sentence(pair)))


CURVE_HEIGHT = 340
"""Pixels, axes and legend included."""

SPEEDUP_HELP = (
    "Time per step of the first device over that of this one, from blocks measured in turns. Above 1: faster."
)
