"""Recorded accelerators: choose one, and compare its rows with the rows of this machine.

A machine without an accelerator shows here how a GPU would perform, and a machine with one how another GPU would.
Recorded rows are only shown: a page never measures, queues or stores them. `core.answer` decides whether a recorded row
can be compared with a row of this machine. Every figure here names both machines.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.answer import recorded_machines, speedup, wording
from core.answer.judgement import BASES, BASIS_TITLES, Basis
from core.answer.recorded_machines import Accelerator, Meeting, NearRecording, RecordedTraining
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import display_name
from core.question.fields import TRAINING, axis_title
from core.results.schema import Trial
from core.text import as_line
from pages.shared import elements, queries, session, study_view
from pages.shared.elements import format_date, plain, show_errors
from pages.shared.queries import LocatedCrossover

ACCELERATOR_HELP = (
    "An accelerator that was measured on another machine. Its stored rows are compared with times measured here. "
    "Every result names both machines."
)
NO_RECORDINGS = (
    "No accelerator has been recorded for this training. To add one, run "
    "`python -m core store export rows.parquet` on a machine with a GPU, then "
    "`python -m core store import rows.parquet` here."
)
SPEEDUP_HELP = "Ratio of the median times per step of two machines. Above 1: the recorded one is faster."
SIZES_HELP = "Measures exactly the sizes at which the accelerator was recorded, so every size has both."

Query = Mapping[str, object]
"""The settings of a training, as `core.answer.recorded_machines` expects them."""


def list_recorded_accelerators(machine: Machine | None) -> tuple[Accelerator, ...]:
    """Return the recorded accelerators of all other machines, the accelerator with the most rows first.

    Returns an empty tuple if the store cannot be read. The function that needs its rows reports the error.
    """
    try:
        return queries.list_accelerators(machine.environment.machine_id if machine else "")
    except CrossoverError:
        return ()


def find_chosen_accelerator(machine: Machine | None) -> Accelerator | None:
    """Return the recorded accelerator that the control or the link names."""
    name = session.read_accelerator()
    return next((one for one in list_recorded_accelerators(machine) if one.name == name), None) if name else None


def choose_accelerator(
    accelerators: Sequence[Accelerator], machine: Machine | None, query: Query | None, axis: str = ""
) -> Accelerator | None:
    """Draw the control and the recordings of a training; return the chosen accelerator.

    Args:
        accelerators: the choices, as `list_recorded_accelerators` returns them.
        machine: this machine.
        query: the training.
        axis: the size that varies, if any; then recordings at several sizes are shown.
    """
    if not accelerators:
        if machine is not None and len(machine.devices) == 1:
            st.caption(NO_RECORDINGS)
        return None
    names = [one.name for one in accelerators]
    name = st.selectbox(
        "Recorded accelerator",
        names,
        index=None,
        format_func=as_line,
        placeholder="none",
        help=ACCELERATOR_HELP,
        **session.bind_control("recorded"),
    )
    linked = session.read_arrived_settings().get("recorded", ())
    if name is None and linked and linked[-1] not in names and not session.has_changed():
        st.warning(plain(f"No accelerator called {linked[-1]} is recorded here: there are {', '.join(names)}."))
    picked = next((one for one in accelerators if one.name == name), None)
    if picked is not None and query is not None:
        _describe_recordings(picked, query, axis)
    return picked


def draw_accelerators_table(accelerators: Sequence[Accelerator], query: Query | None, axis: str = "") -> None:
    """Draw every recorded accelerator, and whether it has a recording of exactly this training."""
    if not accelerators or query is None:
        return
    same = sum(bool(_find_exact_recordings(one, query, axis)) for one in accelerators)
    noun = "accelerator" if len(accelerators) == 1 else "accelerators"
    label = f"{len(accelerators)} recorded {noun}, {same or 'none'} with exactly this training"
    with st.expander(label, icon=":material/inventory_2:", **session.bind_view("stock")) as part:
        if part.open:
            lines = [_make_accelerator_line(one, query, axis) for one in accelerators]
            elements.draw_table(lines, alt="Recorded accelerators")


def choose_recorded_sizes(accelerator: Accelerator | None, query: Query | None, axis: str) -> tuple[float, ...]:
    """Draw the switch for the recorded sizes, and return the sizes of the chosen accelerator if it is on."""
    curve = recorded_machines.find_recorded_curve(accelerator, query, axis) if accelerator and query else ()
    if len(curve) < 2:
        return ()
    bound = session.bind_value("recorded_sizes", (False, True), True)
    used = st.toggle("Use the recorded sizes", True, help=SIZES_HELP, **bound)
    places = tuple(describe.simplify_number(float(each.value(axis))) for each in curve)
    if used:
        st.caption(plain(f"{axis_title(axis).capitalize()}: {', '.join(map(wording.format_size, places))}"))
    return places if used else ()


def find_recorded_rows(trials: Sequence[Trial], machine: Machine | None) -> list[Trial]:
    """Return the recorded rows to show with a run of this machine; show the reason if there are none."""
    picked = find_chosen_accelerator(machine)
    if picked is None or not trials:
        return []
    wanted = recorded_machines.row_settings(trials[0])
    match = recorded_machines.find_recording(picked, wanted)
    if match is None:
        st.info(plain(_explain_lack(picked, wanted, "")))
        return []
    return queries.find_rows(trial_ids=[match.trial_id])


def draw_recorded_verdicts(trials: Sequence[Trial], other_rows: Sequence[Trial]) -> None:
    """Draw the comparison of the recorded rows with the baseline of a run and with its accelerators."""
    for other in other_rows:
        for row in [trials[0], *(row for row in trials[1:] if not speedup.is_host(row))]:
            _draw_recorded_verdict(row, other)
        _draw_fingerprints(trials[0], other)


def describe_chart_machines(trials: Sequence[Trial], other_rows: Sequence[Trial]) -> str:
    """Describe which machine each line of a chart belongs to; empty for a single machine."""
    if not other_rows:
        return ""
    theirs = "; ".join(
        f"{other.device_name} on {_name_machine(other)}, recorded {format_date(other.started_at)}"
        for other in other_rows
    )
    measured = f"{_name_machine(trials[0])}, {format_date(trials[0].started_at)}"
    return f"Two machines. Recorded, dashed: {theirs}. Measured: {measured}."


def find_meetings(rows: Sequence[Trial], axis: str, machine: Machine | None) -> list[Meeting]:
    """Return the comparisons of measured rows with the chosen accelerator over an axis, most shared sizes first."""
    picked = find_chosen_accelerator(machine)
    if picked is None:
        return []
    ids = {
        each.trial_id
        for row in rows
        for each in recorded_machines.find_recorded_curve(picked, recorded_machines.row_settings(row), axis)
    }
    return recorded_machines.find_meetings(rows, queries.find_rows(trial_ids=ids), axis) if ids else []


@show_errors(st.warning)
def draw_meetings(met: Sequence[Meeting], basis: Basis | None = None) -> None:
    """Draw the crossover of two machines: the answer, the chart, the sizes, both fingerprints.

    If an accelerator has several comparisons, this draws the first. The table of cost bases lists the others.
    """
    first = met[0]
    answered = st.container()
    basis = basis or study_view.choose_basis()
    located = queries.locate_meeting(first, basis)
    with answered:
        study_view.draw_headline(located.answer)
    st.caption(f"Included ({BASIS_TITLES[basis]}): {BASES[basis]}.")
    draw_meeting_chart(first, located)
    if why := _explain_step(first, located):
        st.markdown(plain(why))
    _draw_meeting_bases(met)
    st.markdown("**Size by size**, from two machines")
    study_view.draw_sizes_table(located.answer)
    study_view.draw_speedup_chart(located)
    _draw_fingerprints(first.measured[-1], first.recorded[-1])


def draw_meeting_so_far(met: Meeting) -> None:
    """Draw the comparison of two machines during a measurement; raises CrossoverError if they cannot be compared."""
    located = queries.locate_meeting(met, "steady")
    if len(met.shared) > 1:
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")
    draw_meeting_chart(met, located)


def draw_meeting_chart(met: Meeting, located: LocatedCrossover) -> None:
    """Draw time against size for both machines, and explain which marks belong to which machine."""
    study_view.draw_crossover_chart(located)
    ours, theirs = met.measured[-1], met.recorded[-1]
    st.caption(
        plain(
            f"Two machines. Filled marks: measured on {_name_machine(ours)}. Hollow marks, dashed: "
            f"{theirs.device_name}, recorded on {_name_machine(theirs)}, {format_date(theirs.started_at)}."
        )
    )


def explain_missing_meeting(rows: Sequence[Trial], axis: str, machine: Machine | None) -> str:
    """Explain why the chosen accelerator has no result for some rows, in a sentence; empty if none is chosen."""
    picked = find_chosen_accelerator(machine)
    return _explain_lack(picked, recorded_machines.row_settings(rows[-1]), axis) if picked and rows else ""


def _describe_recordings(accelerator: Accelerator, query: Query, axis: str) -> None:
    found = _find_exact_recordings(accelerator, query, axis)
    if found:
        newest = max(each.started_at for each in found)
        times = f" at {len(found)} sizes" if axis else ""
        st.caption(
            plain(f"Exactly this training was recorded{times}, {format_date(newest)}, torch {found[0].versions[0]}.")
        )
    else:
        st.caption(plain(_explain_lack(accelerator, query, axis)))
        for place, near in enumerate(recorded_machines.nearest_recordings(accelerator, query, axis)):
            st.button(
                plain(f"Use {near.differs.replace(' instead of ', ', not ')}"),
                key=f"near-{place}",
                on_click=session.adopt_values,
                args=({name: near.recording.value(name) for name in TRAINING if name != axis},),
            )
    if other := recorded_machines.incomparable_sentence(accelerator, query):
        st.caption(plain(other))


def _find_exact_recordings(accelerator: Accelerator, query: Query, axis: str) -> tuple[RecordedTraining, ...]:
    """Return the recordings of exactly this training; if an axis varies, at two sizes or more."""
    if axis:
        curve = recorded_machines.find_recorded_curve(accelerator, query, axis)
        return curve if len(curve) > 1 else ()
    match = recorded_machines.find_recording(accelerator, query)
    return (match,) if match else ()


def _explain_lack(accelerator: Accelerator, query: Query, axis: str) -> str:
    said = f"There is no recording of this training on {accelerator.name}."
    near = () if query.get("training") else recorded_machines.nearest_recordings(accelerator, query, axis)
    return f"{said} Nearest, but not used: {'; '.join(map(_describe_nearest, near))}." if near else said


def _describe_nearest(near: NearRecording) -> str:
    return f"{near.differs} ({near.sizes} sizes)" if near.sizes > 1 else near.differs


def _make_accelerator_line(accelerator: Accelerator, query: Query, axis: str) -> dict[str, Any]:
    found, near = (
        _find_exact_recordings(accelerator, query, axis),
        recorded_machines.nearest_recordings(accelerator, query, axis),
    )
    had = f"yes, {len(found)} sizes" if found and axis else "yes" if found else "no"
    return {
        "Accelerator": accelerator.name,
        "Device": accelerator.device,
        "Machine": accelerator.machine,
        "Rows": len(accelerator.recordings),
        "This configuration": had,
        "Nearest": "" if found or not near else _describe_nearest(near[0]),
    }


@show_errors(st.warning)
def _draw_recorded_verdict(measured: Trial, other: Trial) -> None:
    found, why = recorded_machines.machine_speedup(measured, other), recorded_machines.recording_cause(other)
    key = f"across-{measured.trial_id}-{other.trial_id}"
    words = study_view.draw_verdict(found, key=key, help=SPEEDUP_HELP)
    if found.verdict != "missing" and why:
        words.markdown(plain(why))
    for said in found.cautions:
        words.caption(plain(said))


def _draw_fingerprints(measured: Trial, other: Trial) -> None:
    label = "Two machines, two fingerprints"
    with st.expander(label, icon=":material/fingerprint:", **session.bind_view("fingerprints")) as part:
        if part.open:
            facts = recorded_machines.compare_fingerprints(measured, other)
            lines = [{"": name, "Measured": ours, "Recorded": theirs} for name, ours, theirs in facts]
            elements.draw_table(lines, height="content", alt="Fingerprints of both machines")


def _explain_step(met: Meeting, located: LocatedCrossover) -> str:
    """Return the step breakdown of the accelerator at the shared size just below the crossing."""
    estimate = located.answer.estimate
    below = [row for row, _ in met.shared if estimate is not None and getattr(row, met.axis) <= estimate]
    other = next((other for row, other in met.shared if below and row is below[-1]), None)
    why = recorded_machines.recording_cause(other) if other else ""
    return f"At {axis_title(met.axis)} {wording.format_size(getattr(other, met.axis))}: {why}" if why else ""


def _draw_meeting_bases(met: Sequence[Meeting]) -> None:
    columns = {_name_meeting(one): partial(queries.locate_meeting, one) for one in met}
    study_view.draw_bases_table(columns, met[0].axis, alt="The crossover of two machines on each cost basis")


def _name_meeting(met: Meeting) -> str:
    recorded, measured = display_name(met.recorded[-1].contender), display_name(met.measured[-1].contender)
    return f"{recorded} recorded, against {measured}"


def _name_machine(row: Trial) -> str:
    return f"{recorded_machines.machine_label(row)}, torch {row.torch_version}"
