"""One run as an answer: the verdict first, then the reason, then all the data behind it, and the downloads.

This module draws the results of `core.answer` and decides nothing. Text from a row's file (names, messages) appears
without formatting.

Possible improvements come from variants measured on the same training, and from other rows of this machine.
`core.answer.remedies` and `core.answer.remedies` find them in rows. The page offers to measure missing variants,
for their times alone and on one device at a time. Their baseline is the default loop of the same device.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core import units
from core.answer import causes, custom_findings, predict, recorded_machines, remedies, speedup
from core.answer.charts import run_charts
from core.answer.judgement import Basis, Crossover
from core.answer.lessons.timeline import race_devices
from core.answer.remedies import (
    CHOSEN_SEPARATELY,
    LanePick,
    Remedies,
    Remedy,
    crossover_shift_sentence,
    find_plain_study,
    pick_lanes,
)
from core.answer.run import Run, RunPair, RunRow
from core.answer.speedup import is_host
from core.answer.study import Study
from core.errors import InvalidValue
from core.jobs.job import Job
from core.jobs.machine import Machine, Moment
from core.question import lanes
from core.question.experiment import (
    EVERY_EPOCH,
    MAX_CONTENDERS,
    Contender,
    Experiment,
    Point,
    display_name,
    inline_name,
)
from core.question.lanes import PLAIN, Lane
from core.question.presets import FEWEST_PAIRS
from core.results.schema import OUTCOMES, Trial
from pages.shared import (
    accelerators_view,
    custom_files,
    elements,
    expectations,
    job_view,
    links,
    permits,
    queries,
    session,
    study_view,
)
from pages.shared.elements import format_date, plain, show_errors

MAX_SIDE_BY_SIDE = 2
"""Number of reports in a row with all five columns visible; further ones begin a new row."""


def draw_run(
    trials: Sequence[Trial],
    recorded: Sequence[Trial] = (),
    machine: Machine | None = None,
    onwards: Callable[[], None] = lambda: None,
) -> None:
    """Draw the rows of one run in the order of its contenders, and show why parts are missing.

    Args:
        trials: the rows of the run.
        recorded: rows of accelerators of other machines, to compare with the run.
        machine: this machine, where missing variants may be measured.
        onwards: function that draws the next questions, below the verdict.
    """
    run = Run(trials)
    everything = [*trials, *map(recorded_machines.label_recording, recorded)]
    rows = [*run.rows, *map(RunRow, everything[len(trials) :])]
    sections: tuple[Callable[[], None], ...] = (
        lambda: accelerators_view.draw_recorded_verdicts(trials, recorded),
        lambda: _draw_verdicts(run, everything),
        onwards,
        lambda: _draw_race(run),
        lambda: _draw_contenders_table(rows),
        lambda: None if causes.is_fit(trials[0]) else draw_remedies(run, machine),
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
    """Return the question that a run answers; None if this version does not support the settings of its rows."""
    first = trials[0]
    try:
        point = Point.from_row(first)
        contenders = tuple(Contender.parse(trial.contender) for trial in trials)
        timed, pairs = first.outcome == "timed", len(first.block_pair)
        few = pairs if timed and pairs < FEWEST_PAIRS else EVERY_EPOCH
        return Experiment(
            point=point, contenders=contenders, budget_s=first.budget_s, pairs=few, whole=not timed or few > 0
        )
    except InvalidValue:
        return None


def draw_run_heading(trials: Sequence[Trial]) -> None:
    asked = make_run_question(trials)
    study_view.draw_question(trials[0], asked.point if asked else None, recalled=session.is_recalled(trials[0].run_id))


def _sort_pairs(run: Run) -> list[RunPair]:
    """Return the pairs with accelerators first: they interest a reader most."""
    return sorted(run.pairs, key=lambda pair: is_host(pair.challenger))


def _drop_lane_pairs(run: Run) -> list[RunPair]:
    """Return the pairs without those variants that are reported with the default loop of their device."""
    return [pair for pair in _sort_pairs(run) if not is_remedy_row(pair.challenger, run.trials)]


def _draw_verdicts(run: Run, everything: Sequence[Trial]) -> None:
    """Draw every verdict in two lines, a bar for each device (also for recorded ones), and the causes."""
    pairs = _drop_lane_pairs(run)
    for pair in pairs:
        key = f"verdict-{pair.challenger.trial_id}"
        words = study_view.draw_verdict(pair.speedup, key=key, help=SPEEDUP_HELP)
        if said := expectations.compare_with_expectation(pair.baseline, pair.challenger, pair.speedup.value):
            words.caption(plain(said))
        if said := predict.compare_run(pair.baseline, pair.challenger, pair.speedup.value):
            words.caption(plain(said))
    if any(trial.step_s for trial in run.trials):
        _draw_titled_chart(None, run_charts.step_bars_chart, everything, "", "Time of a step by device")
    for pair in pairs:
        if pair.speedup.verdict != "missing":
            st.markdown(plain(pair.cause))
    for waits in dict.fromkeys(pair.thread_waits for pair in pairs if pair.speedup.verdict != "missing"):
        if waits:
            st.caption(plain(waits))


def _draw_race(run: Run) -> None:
    """Draw the first pair of devices with timed blocks as a race in real time, for a lecture hall."""
    pair = next((one for one in _drop_lane_pairs(run) if one.baseline.step_s and one.challenger.step_s), None)
    if pair is None:
        return
    with st.expander("Race in real time", icon=":material/flag:", **session.bind_view("race")) as part:
        if part.open:
            race = race_devices([pair.baseline, pair.challenger], has_winner=pair.speedup.has_winner)
            elements.draw_timeline(race, key="race_bars", large=True)


def _draw_contenders_table(rows: Sequence[RunRow]) -> None:
    lines = [_make_contender_line(row) for row in rows]
    empty = dict.fromkeys((title for line in lines for title in line), "")
    elements.draw_table([{**empty, **line} for line in lines], alt="The devices side by side")
    ended: dict[str, list[str]] = {}
    for trial in (row.row for row in rows):
        as_asked = ("completed", "timed") if trial.training else ("completed",)
        if trial.outcome not in as_asked or trial.message:
            ended.setdefault(trial.message or OUTCOMES[trial.outcome], []).append(display_name(trial.contender))
    for said, names in ended.items():
        of_some = f"{'; '.join(names)}: " if len(names) < len(rows) else ""
        st.caption(plain(of_some + (said if of_some else f"{said[:1].upper()}{said[1:]}") + "." * (said[-1:] != ".")))


def _make_contender_line(answer: RunRow) -> dict[str, str]:
    """Return a row of the table: times first, visible on a phone without scrolling, and names, often long, last."""
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


def _draw_training(rows: Sequence[RunRow], note: str) -> None:
    trials = [row.row for row in rows]
    if not any(trial.loss for trial in trials):
        return
    elements.draw_heading("Training")
    if causes.is_fit(trials[0]):
        st.markdown(plain(causes.fit_losses_sentence(trials)))
        return
    if trials[0].training:
        _draw_titled_chart(
            None, run_charts.loss_over_time_chart, trials, "Loss over time", "Training loss against time of training"
        )
        st.caption("Read between the blocks. Each device created it with the same seed.")
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
            st.caption("Same weights, same batches: the curves should coincide.")
            _draw_titled_chart(None, run_charts.loss_over_epochs_chart, trials, "", "Training loss against epochs")


def _draw_breakdown(run: Run, rows: Sequence[RunRow]) -> None:
    elements.draw_heading("Where the time goes")
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
    """Draw what is unusual in the steps of a custom script, a line each, and the facts that are unknown.

    With `is_described`, the page already shows as the cause that nothing is unusual.
    """
    said = custom_findings.oddity_sentences(trials)
    for sentence in said:
        st.markdown(f"- {plain(sentence)}")
    if not said and not is_described:
        st.markdown("Nothing unusual was found in the steps.")
    for sentence in dict.fromkeys(map(custom_findings.unknown_facts_sentence, trials)):
        st.caption(plain(sentence))


def draw_learning(trials: Sequence[Trial]) -> None:
    """Draw the evaluation of the devices, and whether their results are equal."""
    tested = Run([trial for trial in trials if trial.confusion])
    if not tested.rows:
        return
    elements.draw_heading("Evaluation")
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
    elements.draw_table(
        _make_report_rows(report or {}),
        height="content",
        column_config={"class": st.column_config.TextColumn(width=100)},
        alt=f"Classification report of {display_name(trial.contender)}",
    )
    elements.draw_chart(matrix, height=None, alt=f"Confusion matrix of {display_name(trial.contender)}")


def _make_report_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, figures in report.items():
        if isinstance(figures, dict):
            shown = {figure: f"{figures[figure]:.3f}" for figure in ("precision", "recall", "f1-score")}
            rows.append({"class": name, **shown, "support": int(figures["support"])})
    return rows


def _draw_raw_values(run: Run) -> None:
    if any(trial.block_steps for trial in run.trials):
        elements.draw_heading("Raw values")
        with st.expander("How it was measured", **session.bind_view("blocks")) as part:
            if part.open:
                _draw_protocol(run)


def _draw_protocol(run: Run) -> None:
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
        f"Thread counts tried for {display_name(trial.contender)}, with the time per step: {listed}. "
        f"{trial.threads} was fastest."
    )


def _draw_run_downloads(trials: Sequence[Trial]) -> None:
    elements.draw_heading("Export")
    run_id = trials[0].run_id
    elements.draw_row_downloads(trials, name=f"crossover-{run_id}", repeats=True)
    asked = make_run_question(trials)
    elements.draw_command(asked, "run")
    if asked:
        link = {**links.make_run_link(asked), **session.make_accelerator_link(), "run": run_id}
        elements.draw_link("Link to this result and its settings:", link)


def _draw_titled_chart(
    place: Any, make: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial], title: str, alt: str
) -> None:
    """Draw a chart below its title; bars have their own height, curves get a height to read values from."""
    target = place if place is not None else st
    if title:
        target.markdown(f"**{title}**")
    height: Any = (
        "content"
        if make in (run_charts.step_bars_chart, run_charts.breakdown_chart, run_charts.startup_chart)
        else CURVE_HEIGHT
    )
    elements.draw_chart(queries.make_chart(make, trials), place=target, height=height, alt=alt)


def _draw_sentence(sentence: Callable[[RunPair], str], pair: RunPair) -> None:
    with show_errors(st.markdown):
        st.markdown(plain(sentence(pair)))


CURVE_HEIGHT = 340
"""Height of a curve chart in pixels, with axes and legend."""

SPEEDUP_HELP = (
    "Time per step of the first device over that of this one, from blocks measured in turns. Above 1: faster."
)


REMEDY_PAIRS = 14
"""Pairs of blocks per variant: one half selects the best variant, the other half gives its interval."""

REMEDY_CAPTION = (
    "Each variant took turns with the default loop on the same device. Above 1×, the variant is faster; the interval "
    "covers the true ratio with 95 % probability. Compilation and graph capture happen once at the start and are "
    "excluded."
)
OTHER_REMEDIES = "\\* Lower precision, so the training differs."
REMEDY_OFFER = "Compares step times only, alternating with the default loop."
COMPILING = "The first compilation may take minutes."


def draw_remedies(run: Run, machine: Machine | None = None) -> None:
    """Draw the possible improvements for the devices of a run; on this machine, offer to measure missing ones."""
    found, duel = {one.device: one for one in run.remedies}, run.best_variants
    bases = [row for row in run.trials if remedies.is_plain(row) and row.step_s]
    ours = [row for row in bases if machine and row.machine_id == machine.environment.machine_id and _can_repeat(row)]
    batches = custom_findings.batch_sentences(run.trials)
    if not (found or ours or batches):
        return
    elements.draw_heading("What would help?")
    for sentence in batches:
        st.markdown(f"- {plain(sentence)}")
    if duel:
        icon = ":material/trophy:" if duel.best.has_winner else ":material/help:"
        st.info(f"**{plain(duel.sentence)}**", icon=icon)
    waited, drawn, offered = False, list(run.remedies), set[str]()
    for row in bases:
        own = found.get(remedies.base_contender(row))
        if own:
            _draw_device_remedies(own)
        if machine and row in ours:
            waited = _offer_remedies(row, machine, own, drawn, offered, waited=waited) or waited
        if machine:
            _draw_other_remedies(row)
    if drawn:
        st.caption(f"{REMEDY_CAPTION} {OTHER_REMEDIES}" if any(one.other for one in drawn) else REMEDY_CAPTION)


def _can_repeat(row: Trial) -> bool:
    """Return whether a training can be measured again: a custom script only with an unchanged, offered file."""
    return not (row.training and custom_files.describe_file_state(row))


def is_remedy_row(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Return whether a row is reported with the default loop of its device, without a verdict of its own."""
    served = remedies.base_contender(trial)
    return not remedies.is_plain(trial) and any(
        remedies.is_plain(row) and remedies.base_contender(row) == served for row in trials
    )


def make_remedy_questions(row: Trial, machine: Machine) -> tuple[Experiment, ...]:
    """Return the questions that measure the variants of a device against its default loop, for their times alone.

    The first question is the one to submit: its CPU variants use the threads of the row and are compiled once. The
    others count as answers too: with every variant, and with several numbers of threads if the row was measured so.
    Returns an empty tuple if the device has no variants.
    """
    refusals = machine.refusals.get(row.device)
    if refusals is None:
        return ()
    on_host = speedup.is_host(row)
    worth = lanes.worth_trying(row, on_host=on_host)
    here = [lane for lane in worth if not lanes.why_not(lane, refusals, row.device)][: MAX_CONTENDERS - 1]
    few = lanes.drop_unsuited_compiled(here, speedup.step_time(row).median_s) if on_host else here
    served = f"cpu@{row.threads}" if row.contender == "cpu" and row.threads else row.contender
    with contextlib.suppress(InvalidValue):
        return tuple(
            _make_lane_question(row, *asked) for asked in {(served, tuple(few)): 0, (row.contender, tuple(here)): 0}
        )
    return ()


def _make_lane_question(row: Trial, contender: str, worth: Sequence[Lane]) -> Experiment:
    names = [f"{contender}{''.join(f'+{word}' for word in lane.words)}" for lane in (PLAIN, *worth)]
    return Experiment(point=Point.from_row(row), contenders=tuple(map(Contender.parse, names)), pairs=REMEDY_PAIRS)


@show_errors(st.warning)
def draw_best_lanes(study: Study, rows: Sequence[Trial], other_studies: Sequence[Study], basis: Basis) -> None:
    """Draw the crossover of the best variants with that of the default loop."""
    chosen = pick_lanes(study, rows, basis)
    if not chosen:
        return
    st.divider()
    elements.draw_heading("Best against best")
    located = queries.locate_best_lanes(study, chosen, basis)
    study_view.draw_headline(located.answer)
    plain_one = find_plain_study(study, other_studies)
    if plain_one:
        answer = queries.locate_crossover(plain_one, basis).answer
        st.markdown(
            plain(
                crossover_shift_sentence(answer, located.answer) or f"Default loop on both devices: {answer.sentence}"
            )
        )
    st.caption(f"{CHOSEN_SEPARATELY}. Only variants with the same numerics take part.")
    study_view.draw_crossover_chart(located)
    elements.draw_table(
        [_make_pick_line(pick, located.answer) for pick in chosen], alt="The best variant of each device at each size"
    )


def _make_pick_line(pick: LanePick, answer: Crossover) -> dict[str, object]:
    named = {answer.baseline: pick.baseline, answer.challenger: pick.challenger}
    lanes_of = {name: row.contender if row else pick.obstacle for name, row in named.items()}
    return {study_view.title_size(answer): pick.size if pick.size % 1 else int(pick.size), **lanes_of}


def _draw_device_remedies(remedies: Remedies) -> None:
    st.markdown(f"**{plain(remedies.headline)}**")
    if spec := queries.make_chart(run_charts.lane_effects_chart, remedies):
        elements.draw_chart(
            spec, height=None, alt=f"Speedup of each variant over the default loop on {display_name(remedies.device)}"
        )
    with st.expander("Each variant in words"):
        _draw_remedy_sentences(remedies)
    for one in remedies.broken:
        st.warning(plain(one.sentence))


def _draw_remedy_sentences(remedies: Remedies) -> None:
    for title, listed in (("", remedies.same), ("Lower precision, so the training differs:", remedies.other)):
        if listed and title:
            st.markdown(plain(title))
        for one in listed:
            _draw_remedy_line(one)


def _draw_remedy_line(one: Remedy) -> None:
    icon = ":material/trending_up:" if one.helps else ":material/remove:"
    st.markdown(f"{icon} {plain(one.sentence)}")
    if one.note:
        st.caption(plain(one.note))


def _offer_remedies(
    row: Trial, machine: Machine, existing: Remedies | None, drawn: list[Remedies], offered: set[str], *, waited: bool
) -> bool:
    """Draw the stored variants of a device, their measurement, or its button; return whether one is under way.

    Drawn results are added to `drawn`, and offered variants to `offered`, so that each is described once.
    """
    all_asked = [one for one in make_remedy_questions(row, machine) if len(one.contenders) > 1]
    if not all_asked or (existing and _has_all_lanes(existing, all_asked[0])):
        return False
    asked, known = all_asked[0], queries.find_known_answers(all_asked, machine)
    stored = next((known[one.id] for one in all_asked if one.id in known), [])
    told = Run(stored).remedies if stored and stored[0].run_id != row.run_id else ()
    if told:
        st.caption(
            plain(f"More variants on {display_name(row.contender)}, measured {format_date(stored[0].started_at)}:")
        )
    for one in told:
        _draw_device_remedies(one)
        drawn.append(one)
    if any(remedy.value is not None for one in told for remedy in (*one.same, *one.other)):
        return False
    jobs = [job for job in queries.open_queue().jobs() if job.experiment and job.experiment.id == asked.id]
    job = jobs[-1] if jobs else None
    if job and job.active:
        _draw_remedy_job(job, machine, waited=waited)
        return True
    if job and job.state in ("failed", "crashed"):
        st.warning(plain(job.message or f"This measurement has {job.state}."))
    _draw_remedy_button(asked, row, machine, offered, fresh=bool(told))
    return False


def _has_all_lanes(existing: Remedies, request: Experiment) -> bool:
    have = {one.title for one in (*existing.same, *existing.other, *existing.broken)}
    return have >= {contender.lane.title for contender in request.contenders[1:]}


def _draw_remedy_job(job: Job, machine: Machine, *, waited: bool) -> None:
    if waited:
        st.caption(plain(f"The variants of {job.question.contenders[0]} are waiting for their turn."))
        return
    if job.began is not None and job.experiment is not None:
        st.fragment(_draw_clock, run_every=job_view.REFRESH_S)(
            job.began, _describe_expected_time(job.experiment, machine)
        )
    job_view.draw_job(job)


def _draw_clock(began: Moment, expected: str) -> None:
    """Draw the elapsed time, the only progress while a variant is compiled."""
    st.caption(f"Running for {units.format_duration(round(began.ago_s or 0.0))}, {expected} in all.")


def _describe_expected_time(request: Experiment, machine: Machine) -> str:
    least, most = map(units.format_rough_time, queries.estimate_lanes_seconds(request, machine))
    return f"expected to take {least} to {most}"


def _has_compiled_lane(request: Experiment) -> bool:
    return any(contender.lane.execution == "compiled" for contender in request.contenders)


def _draw_remedy_button(request: Experiment, row: Trial, machine: Machine, offered: set[str], *, fresh: bool) -> None:
    """Draw the button that measures the variants of a device; describe each variant once per page."""
    titles, reason = "; ".join(contender.lane.title for contender in request.contenders[1:]), permits.refusal(request)
    if not offered:
        st.caption(f"{REMEDY_OFFER} {COMPILING}" if _has_compiled_lane(request) else REMEDY_OFFER)
    lanes_named = "" if titles in offered else f"{titles}; "
    offered.add(titles)
    offer = f"{lanes_named}{_describe_expected_time(request, machine)}. {reason}"
    st.caption(f"**{plain(display_name(row.contender))}**: {plain(offer)}")
    label = f"Measure what would help {plain(inline_name(row.contender))}"
    if st.button(label, key=f"help-{row.trial_id}", icon=":material/speed:", disabled=bool(reason)):
        with show_errors():
            permits.submit(request, queries.open_store(), fresh=fresh)
            st.rerun()


def _draw_other_remedies(row: Trial) -> None:
    found = queries.find_other_remedies(row)
    if not found:
        return
    st.markdown(
        plain(f"Other results of this machine, by epoch time on {inline_name(row.contender)}, not measured in turns:")
    )
    for one in found:
        _draw_remedy_line(one)
