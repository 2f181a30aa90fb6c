"""One run as an answer: the verdict on top, then why, then everything it rests on, and how to take it along.

Draws what `core.answer` says and decides nothing. Whatever a row's file wrote (names, messages) is shown as plain text.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core import units
from core.answer.charts import runs
from core.answer.own import facts
from core.answer.run import fits, own
from core.answer.run.run_answer import PairAnswer, RowAnswer, RunAnswer
from core.answer.run.speedup import is_host
from core.answer.study.machines import two_machines
from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question.experiment import EVERY_EPOCH, Contender, Experiment, Point, titled
from core.question.usual import LOOKS
from core.results.schema import OUTCOMES, Trial
from pages.shared.answer import accelerators, downloads, headings, remedies
from pages.shared.data import expectations, prepared
from pages.shared.draw import charts, tables
from pages.shared.draw.text import plain, told
from pages.shared.link import links, memory, others, state

MOST_BESIDE = 2
"""Reports beside each other, whose five columns are whole; more begin a new row."""


def draw(
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
    everything = [*trials, *map(two_machines.shown, recorded)]
    rows = [*run.rows, *map(RowAnswer, everything[len(trials) :])]
    sections: tuple[Callable[[], None], ...] = (
        lambda: accelerators.verdicts(trials, recorded),
        lambda: _verdicts(run, everything),
        onwards,
        lambda: _contenders(rows),
        lambda: None if fits.is_fit(trials[0]) else remedies.section(run, machine),
        lambda: _training(rows, note=accelerators.caption(trials, recorded)),
        lambda: _where_the_time_goes(run, rows),
        lambda: learned(everything),
        lambda: _raw(run),
        lambda: _take_along(trials),
    )
    for section in sections:
        with told(st.warning):
            section()


def experiment_of(trials: Sequence[Trial]) -> Experiment | None:
    """The question that a run answers; None where its rows ask for what this version does not offer."""
    first = trials[0]
    try:
        point = Point.of(first)
        contenders = tuple(Contender.parse(trial.contender) for trial in trials)
        timed, pairs = first.outcome == "timed", len(first.block_pair)
        few = pairs if timed and pairs < LOOKS[0] else EVERY_EPOCH
        return Experiment(
            point=point, contenders=contenders, budget_s=first.budget_s, pairs=few, whole=not timed or few > 0
        )
    except InvalidValue:
        return None


def heading(trials: Sequence[Trial]) -> None:
    asked = experiment_of(trials)
    headings.asked(trials[0], asked.point if asked else None, recalled=memory.recalled(trials[0].run_id))


def _pairs(run: RunAnswer) -> list[PairAnswer]:
    """Accelerators first: they are what one came for."""
    return sorted(run.pairs, key=lambda pair: is_host(pair.challenger))


def _without_lanes(run: RunAnswer) -> list[PairAnswer]:
    """The pairs without lanes that are told of beside the plain steps of their device."""
    return [pair for pair in _pairs(run) if not remedies.beside(pair.challenger, run.trials)]


def _verdicts(run: RunAnswer, everything: Sequence[Trial]) -> None:
    """Every verdict in two lines, a bar a device, the recorded ones too, and the causes."""
    pairs = _without_lanes(run)
    for pair in pairs:
        key = f"verdict-{pair.challenger.trial_id}"
        words = headings.verdict(pair.speedup.words, key=key, help=SPEEDUP_HELP)
        if said := expectations.beside(pair.baseline, pair.challenger, pair.speedup.value):
            words.caption(plain(said))
    if any(trial.step_s for trial in run.trials):
        _chart(None, runs.step_bars, everything, "", "Time of a step by device")
    for pair in pairs:
        if pair.speedup.verdict != "missing":
            st.markdown(plain(pair.cause))


def _contenders(rows: Sequence[RowAnswer]) -> None:
    lines = [_line(row) for row in rows]
    empty = dict.fromkeys((title for line in lines for title in line), "")
    tables.table([{**empty, **line} for line in lines], alt="The devices side by side")
    ended: dict[str, list[str]] = {}
    for trial in (row.row for row in rows):
        as_asked = ("completed", "timed") if trial.training else ("completed",)
        if trial.outcome not in as_asked or trial.message:
            ended.setdefault(trial.message or OUTCOMES[trial.outcome], []).append(titled(trial.contender))
    for said, names in ended.items():
        of_some = f"{'; '.join(names)}: " if len(names) < len(rows) else ""
        st.caption(plain(of_some + (said if of_some else f"{said[:1].upper()}{said[1:]}") + "." * (said[-1:] != ".")))


def _line(answer: RowAnswer) -> dict[str, str]:
    """A row of the table: times first, which a phone shows without scrolling, and names, which may be long, last."""
    trial, step = answer.row, answer.step
    learned = {"Test accuracy": answer.accuracy_shown}
    epoch = {"Epoch": units.if_known(answer.median_epoch_s, units.duration)}
    return {
        "Device": titled(trial.contender),
        "Fit" if fits.is_fit(trial) else "Step": units.if_known(step.median_s, units.duration),
        "95 % interval": units.interval(step.low_s, step.high_s, units.duration),
        "Noise": units.if_known(step.noise, units.share),
        **({} if trial.training or fits.is_fit(trial) else epoch),
        "Start-up": units.if_known(answer.startup_s, units.duration),
        **(facts.told(trial) if trial.training else learned),
        "Threads": str(trial.threads or ""),
        "Name": trial.device_name,
    }


def _training(rows: Sequence[RowAnswer], note: str) -> None:
    trials = [row.row for row in rows]
    if not any(trial.loss for trial in trials):
        return
    st.header("Training")
    if fits.is_fit(trials[0]):
        st.markdown(plain(fits.losses(trials)))
        return
    if trials[0].training:
        _chart(None, runs.loss_over_time, trials, "Loss over time", "Training loss against time of training")
        st.caption("Read between the blocks. Each device built it anew, with the same seed.")
        return
    left, right = st.columns(2, gap="medium")
    _chart(left, runs.loss_over_time, trials, "Loss over time", "Training loss against time of training")
    if any(row.epoch_s for row in rows):
        _chart(right, runs.epoch_times, trials, "Time of each epoch", "Time of each epoch by device")
    else:
        right.caption("No epoch was trained to its end.")
    if note:
        st.caption(plain(note))
    with st.expander("Loss over epochs", **state.bound_view("loss")) as part:
        if part.open:
            st.caption("Same weights, same batches: over epochs the curves should lie on each other.")
            _chart(None, runs.loss_over_epochs, trials, "", "Training loss against epochs")


def _where_the_time_goes(run: RunAnswer, rows: Sequence[RowAnswer]) -> None:
    st.header("Where the time goes")
    left, right = st.columns(2, gap="medium")
    everything = [row.row for row in rows]
    if any(row.times for row in rows):
        _chart(left, runs.breakdown, everything, "One step", "Time per step by part")
    else:
        left.caption(fits.PIECE if fits.is_fit(everything[0]) else "No breakdown was measured.")
    for row in rows:
        if row.whole:
            left.caption(plain(row.whole))
    if any(trial.startup_build_s is not None for trial in everything):
        _chart(right, runs.startup, everything, "Start-up, once", "Start-up by part")
    if everything[0].training:
        _seen(
            everything, told=any(own.NOTHING in pair.cause for pair in run.pairs if pair.speedup.verdict != "missing")
        )
    for pair in _without_lanes(run):
        _say(lambda pair: pair.break_even.sentence, pair)


def _seen(trials: Sequence[Trial], *, told: bool) -> None:
    """What stands out in the steps of one's own training, a line each, and what is not known of them.

    That nothing does may be `told` already, as what decides.
    """
    said = own.odd(trials)
    for sentence in said:
        st.markdown(f"- {plain(sentence)}")
    if not said and not told:
        st.markdown("Nothing stands out in what can be seen of its steps from outside.")
    for sentence in dict.fromkeys(map(facts.unknown, trials)):
        st.caption(plain(sentence))


def learned(trials: Sequence[Trial]) -> None:
    """What the devices learned, and whether it is the same."""
    tested = RunAnswer([trial for trial in trials if trial.confusion])
    if not tested.rows:
        return
    st.header("What was learned")
    for pair in _pairs(tested):
        _say(lambda pair: pair.agreement.sentence if pair.agreement else "", pair)
    beside = min(MOST_BESIDE, len(tested.rows))
    for begin in range(0, len(tested.rows), beside):
        group = tested.rows[begin : begin + beside]
        for column, answer in zip(st.columns(beside, gap="medium"), group, strict=False):
            with column:
                st.markdown(f"**{plain(answer.label)}**")
                _report(answer.row)
    with st.expander("Reports as text", **state.bound_view("reports")) as part:
        for answer in tested.rows if part.open else ():
            st.markdown(f"**{plain(answer.label)}**")
            st.code(answer.classification_text, language=None)


def _report(trial: Trial) -> None:
    report, matrix = prepared.report(trial), prepared.chart(runs.confusion, trial)
    tables.table(
        _report_rows(report or {}),
        height="content",
        column_config={"class": st.column_config.TextColumn(width=100)},
        alt=f"Classification report of {titled(trial.contender)}",
    )
    charts.chart(matrix, height=None, alt=f"Confusion matrix of {titled(trial.contender)}")


def _report_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, figures in report.items():
        if isinstance(figures, dict):
            shown = {figure: f"{figures[figure]:.3f}" for figure in ("precision", "recall", "f1-score")}
            rows.append({"class": name, **shown, "support": int(figures["support"])})
    return rows


def _raw(run: RunAnswer) -> None:
    if any(trial.block_steps for trial in run.trials):
        with st.expander("How it was measured", **state.bound_view("blocks")) as part:
            if part.open:
                _how_it_was_measured(run)


def _how_it_was_measured(run: RunAnswer) -> None:
    _chart(None, runs.blocks, run.trials, "Every timed block", "Time per step of every timed block")
    for answer in run.rows:
        if not answer.row.training:
            st.caption(plain(answer.epoch_check))
        if answer.parts:
            st.caption(plain(answer.parts.excess_sentence))
        if answer.row.threads_tried:
            st.caption(plain(_threads_tried(answer.row)))


def _threads_tried(trial: Trial) -> str:
    tried = zip(trial.threads_tried, trial.threads_tried_step_s, strict=False)
    listed = ", ".join(f"{threads}: {units.duration(step_s)}" for threads, step_s in tried)
    return f"Threads tried for {titled(trial.contender)}, with their step: {listed}; {trial.threads} took the least."


def _take_along(trials: Sequence[Trial]) -> None:
    st.header("Take it along")
    run_id = trials[0].run_id
    downloads.rows(trials, name=f"crossover-{run_id}", repeats=True)
    asked = experiment_of(trials)
    downloads.command(asked, "run")
    if asked:
        link = {**links.settings(asked), **others.beside_machine(), "run": run_id}
        downloads.link("Link to this result and its settings:", link)


def _chart(
    place: Any, make: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial], title: str, alt: str
) -> None:
    """A chart below its title; bars know their own height, curves get one to read values from."""
    target = place if place is not None else st
    if title:
        target.markdown(f"**{title}**")
    height: Any = "content" if make in (runs.step_bars, runs.breakdown, runs.startup) else CURVE_HEIGHT
    charts.chart(prepared.chart(make, trials), place=target, height=height, alt=alt)


def _say(sentence: Callable[[PairAnswer], str], pair: PairAnswer) -> None:
    with told(st.markdown):
        st.markdown(plain(sentence(pair)))


CURVE_HEIGHT = 340
"""Pixels, axes and legend included."""

SPEEDUP_HELP = (
    "Time per step of the first device over that of this one, from blocks measured in turns. Above 1: faster."
)
