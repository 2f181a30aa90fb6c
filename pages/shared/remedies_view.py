"""What would help: lanes measured on this very training, beside plain steps, and other rows of this machine.

Draws what `core.answer.remedies` and `core.answer.best_lanes` say of rows and decides nothing. What was not
measured is offered to be, for the times alone, on one device at a time: its lanes are compared with its own plain
steps.
"""

import contextlib
from collections.abc import Sequence

import streamlit as st

from core import units
from core.answer import custom_findings as own_training
from core.answer import remedies, speedup
from core.answer.best_lanes import CHOSEN_SEPARATELY, LanePick, crossover_shift_sentence, find_plain_study, pick_lanes
from core.answer.charts import run_charts as lane_charts
from core.answer.remedies import Remedies, Remedy
from core.answer.result import Basis, Crossover
from core.answer.run import RunAnswer
from core.answer.study import Study
from core.errors import InvalidValue
from core.jobs.job import Job
from core.jobs.machine import Machine, Moment
from core.question import lanes
from core.question.experiment import MAX_CONTENDERS, Contender, Experiment, Point, display_name, inline_name
from core.question.lanes import PLAIN, Lane
from core.results.schema import Trial
from pages.shared import charts, custom_files, job_view, permits, queries, study_view, tables
from pages.shared.text import format_date, plain, show_errors

REMEDY_PAIRS = 14
"""Pairs of blocks of each lane: half of them still give an interval, once the best lane was chosen on the others."""

REMEDY_CAPTION = (
    "Each lane, which is another way to run the same steps, took turns with plain ones on the same device. Above 1× it "
    "is faster; the interval holds the true ratio with 95 % probability. Compiling and recording are paid once, at the "
    "start, and are not in these figures."
)
OTHER_REMEDIES = "\\* Other mathematics, so another training."
REMEDY_OFFER = "Each for the times alone, in turns with plain steps."
COMPILING = "Compiling takes most of the time, the first time."


def draw_remedies(run: RunAnswer, machine: Machine | None = None) -> None:
    """Draw what would help the devices of a run; on this machine, what is missing may be measured."""
    found, duel = {one.device: one for one in run.remedies}, run.best_variants
    bases = [row for row in run.trials if remedies.is_plain(row) and row.step_s]
    ours = [row for row in bases if machine and row.machine_id == machine.environment.machine_id and _can_repeat(row)]
    batches = own_training.batch_sentences(run.trials)
    if not (found or ours or batches):
        return
    st.header("What would help?")
    for sentence in batches:
        st.markdown(f"- {plain(sentence)}")
    if duel:
        st.info(f"**{plain(duel.sentence)}**", icon=":material/trophy:")
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
    """Whether a training can be measured again: one's own only as its file was, and where that is offered."""
    return not (row.training and custom_files.describe_file_state(row))


def is_remedy_row(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Whether a row is told of here, beside the plain steps of its own device, and needs no verdict of its own."""
    served = remedies.base_contender(trial)
    return not remedies.is_plain(trial) and any(
        remedies.is_plain(row) and remedies.base_contender(row) == served for row in trials
    )


def make_remedy_questions(row: Trial, machine: Machine) -> tuple[Experiment, ...]:
    """The lanes that the device of a row of plain steps has here, beside these, for the times alone, if it has any.

    The first is what is asked: lanes of a CPU run on the threads of the row, and are compiled once. The others would
    answer as well: every lane, tried with several numbers of threads where the row was.
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
    """Draw the crossover of the best lanes beside that of plain steps, of a study among others of the same runs."""
    chosen = pick_lanes(study, rows, basis)
    if not chosen:
        return
    st.divider()
    st.header("Best against best")
    located = queries.locate_best_lanes(study, chosen, basis)
    study_view.draw_headline(located.answer)
    plain_one = find_plain_study(study, other_studies)
    if plain_one:
        answer = queries.locate_crossover(plain_one, basis).answer
        st.markdown(
            plain(crossover_shift_sentence(answer, located.answer) or f"Plain steps on both devices: {answer.sentence}")
        )
    st.caption(f"{CHOSEN_SEPARATELY}. Only lanes that compute what plain steps compute take part.")
    study_view.draw_crossover_chart(located)
    tables.draw_table(
        [_make_pick_line(pick, located.answer) for pick in chosen], alt="The best lane of either device at each size"
    )


def _make_pick_line(pick: LanePick, answer: Crossover) -> dict[str, object]:
    named = {answer.baseline: pick.baseline, answer.challenger: pick.challenger}
    lanes_of = {name: row.contender if row else pick.obstacle for name, row in named.items()}
    return {study_view.title_size(answer): pick.size if pick.size % 1 else int(pick.size), **lanes_of}


def _draw_device_remedies(remedies: Remedies) -> None:
    st.markdown(f"**{plain(remedies.headline)}**")
    if spec := queries.make_chart(lane_charts.lane_effects_chart, remedies):
        charts.draw_chart(
            spec, height=None, alt=f"What each lane of {display_name(remedies.device)} gains over plain steps"
        )
    with st.expander("Lane by lane, in words"):
        _draw_remedy_sentences(remedies)
    for one in remedies.broken:
        st.warning(plain(one.sentence))


def _draw_remedy_sentences(remedies: Remedies) -> None:
    for title, listed in (("", remedies.same), ("Other mathematics, so another training:", remedies.other)):
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
    """Draw what was measured of a device's lanes before, its measurement, or the button; whether one is under way.

    What is drawn joins what was `drawn`, and lanes that are offered join those that were `offered` and described.
    """
    all_asked = [one for one in make_remedy_questions(row, machine) if len(one.contenders) > 1]
    if not all_asked or (existing and _has_all_lanes(existing, all_asked[0])):
        return False
    asked, known = all_asked[0], queries.find_known_answers(all_asked, machine)
    stored = next((known[one.id] for one in all_asked if one.id in known), [])
    told = RunAnswer(stored).remedies if stored and stored[0].run_id != row.run_id else ()
    if told:
        st.caption(plain(f"More lanes of {display_name(row.contender)}, measured {format_date(stored[0].started_at)}:"))
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
        st.caption(plain(f"The lanes of {job.question.contenders[0]} wait for their turn."))
        return
    if job.began is not None and job.experiment is not None:
        st.fragment(_draw_clock, run_every=job_view.REFRESH_S)(
            job.began, _describe_expected_time(job.experiment, machine)
        )
    job_view.draw_job(job)


def _draw_clock(began: Moment, expected: str) -> None:
    """How long it runs already, which moves while a lane is compiled and nothing else does."""
    st.caption(f"Running for {units.format_duration(round(began.ago_s or 0.0))}, {expected} in all.")


def _describe_expected_time(request: Experiment, machine: Machine) -> str:
    least, most = map(units.format_rough_time, queries.estimate_lanes_seconds(request, machine))
    return f"expected to take {least} to {most}"


def _has_compiled_lane(request: Experiment) -> bool:
    return any(contender.lane.execution == "compiled" for contender in request.contenders)


def _draw_remedy_button(request: Experiment, row: Trial, machine: Machine, offered: set[str], *, fresh: bool) -> None:
    """Draw what measures the lanes of a device; lanes that were offered for another one are not described again."""
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
        plain(
            f"Other rows of this machine, by the time of an epoch on {inline_name(row.contender)}, not measured in "
            "turns:"
        )
    )
    for one in found:
        _draw_remedy_line(one)
