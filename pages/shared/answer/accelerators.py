"""Recorded accelerators beside what this machine measures: which to look at, and what two machines say together.

On a machine without an accelerator this is how one sees what one would do; on one with an accelerator, how another
card would have done. A recorded row is looked at, never measured, queued or stored. Whether it may be set against a
row of this machine is decided by `core.answer`; every figure drawn here names both machines.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.answer.run import speedup
from core.answer.study import wording
from core.answer.study.machines import recorded, two_machines
from core.answer.study.machines.recorded import Accelerator, Near, RecordedTraining
from core.answer.study.machines.two_machines import Meeting
from core.answer.study.result import BASES, BASIS_TITLES, Basis
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import titled
from core.question.fields import TRAINING, axis_title
from core.results.schema import Trial
from core.text import as_line
from pages.shared.answer import headings, study_view
from pages.shared.data import prepared, reads
from pages.shared.data.prepared import Located
from pages.shared.draw import tables
from pages.shared.draw.text import date, plain, told
from pages.shared.link import others, state

HELP = (
    "An accelerator that was measured on another machine. Its rows are put beside what is measured here: two machines, "
    "which is said everywhere. Nothing is measured on it."
)
NONE = (
    "No accelerator has been recorded for this training: no row of one came with the app, and none was imported. "
    "Rows that were measured on a machine with a GPU (there: `python -m core store export rows.parquet`) are imported "
    "by `python -m core store import rows.parquet`."
)
SPEEDUP_HELP = "Ratio of the median times per step of two machines. Above 1: the recorded one is faster."
SIZES_HELP = "Measures here at just the sizes at which the accelerator was recorded, so that every size has both."

Wanted = Mapping[str, object]
"""A training as `core.answer.study.machines.recorded` wants it."""


def stock(machine: Machine | None) -> tuple[Accelerator, ...]:
    """Every accelerator of other machines that rows are there of, the one with the most rows first.

    None where the store cannot be read, which is said by whoever needs its rows.
    """
    try:
        return prepared.accelerators(machine.environment.machine_id if machine else "")
    except CrossoverError:
        return ()


def chosen(machine: Machine | None) -> Accelerator | None:
    """The recorded accelerator that the control or the link names."""
    name = others.recorded()
    return next((one for one in stock(machine) if one.name == name), None) if name else None


def choose(
    found: Sequence[Accelerator], machine: Machine | None, wanted: Wanted | None, axis: str = ""
) -> Accelerator | None:
    """Draw the control and what the chosen accelerator has of a training, at several sizes where an axis is varied.

    Args:
        found: those to choose from, as in `stock`.
        machine: this one.
        wanted: the training.
        axis: the size that is varied, if one is.
    """
    if not found:
        if machine is not None and len(machine.devices) == 1:
            st.caption(NONE)
        return None
    names = [one.name for one in found]
    name = st.selectbox(
        "Recorded accelerator",
        names,
        index=None,
        format_func=as_line,
        placeholder="none",
        help=HELP,
        **state.bound("recorded"),
    )
    linked = state.arrived().get("recorded", ())
    if name is None and linked and linked[-1] not in names and not state.touched():
        st.warning(plain(f"No accelerator called {linked[-1]} is recorded here: there are {', '.join(names)}."))
    picked = next((one for one in found if one.name == name), None)
    if picked is not None and wanted is not None:
        _say_what_it_has(picked, wanted, axis)
    return picked


def listing(found: Sequence[Accelerator], wanted: Wanted | None, axis: str = "") -> None:
    """Draw every recorded accelerator, and which of them did this very training."""
    if not found or wanted is None:
        return
    same = sum(bool(_exact(one, wanted, axis)) for one in found)
    noun = "accelerator" if len(found) == 1 else "accelerators"
    label = f"{len(found)} recorded {noun}, {same} of this very training"
    with st.expander(label, icon=":material/inventory_2:", **state.bound_view("stock")) as part:
        if part.open:
            lines = [_line(one, wanted, axis) for one in found]
            tables.table(lines, alt="Recorded accelerators")


def sizes(accelerator: Accelerator | None, wanted: Wanted | None, axis: str) -> tuple[float, ...]:
    """The sizes that the chosen accelerator was recorded at, if they are to be used; draws the control of that."""
    curve = recorded.along(accelerator, wanted, axis) if accelerator and wanted else ()
    if len(curve) < 2:
        return ()
    used = st.toggle("Use the recorded sizes", True, help=SIZES_HELP, **state.bound("recorded_sizes"))
    places = tuple(describe.plain(float(each.value(axis))) for each in curve)
    if used:
        st.caption(plain(f"{axis_title(axis).capitalize()}: {', '.join(map(wording.size, places))}"))
    return places if used else ()


def beside(trials: Sequence[Trial], machine: Machine | None) -> list[Trial]:
    """The recorded rows that are to be shown with a run of this machine; says why where there are none."""
    picked = chosen(machine)
    if picked is None or not trials:
        return []
    wanted = recorded.of_row(trials[0])
    match = recorded.matching(picked, wanted)
    if match is None:
        st.info(plain(_lacking(picked, wanted, "")))
        return []
    return reads.rows(trial_ids=[match.trial_id])


def verdicts(trials: Sequence[Trial], others: Sequence[Trial]) -> None:
    """Draw the recorded rows against the baseline of a run and against its accelerators."""
    for other in others:
        for row in [trials[0], *(row for row in trials[1:] if not speedup.is_host(row))]:
            _verdict(row, other)
        _fingerprints(trials[0], other)


def caption(trials: Sequence[Trial], others: Sequence[Trial]) -> str:
    """Which machine each line of a chart is of; empty where all are of one."""
    if not others:
        return ""
    theirs = "; ".join(
        f"{other.device_name} on {_machine(other)}, recorded {date(other.started_at)}" for other in others
    )
    return f"Two machines. Recorded, dashed: {theirs}. Measured: {_machine(trials[0])}, {date(trials[0].started_at)}."


def meetings(rows: Sequence[Trial], axis: str, machine: Machine | None) -> list[Meeting]:
    """What rows measured along an axis and the chosen accelerator say together, most shared sizes first."""
    picked = chosen(machine)
    if picked is None:
        return []
    ids = {each.trial_id for row in rows for each in recorded.along(picked, recorded.of_row(row), axis)}
    return two_machines.meetings(rows, reads.rows(trial_ids=ids), axis) if ids else []


@told(st.warning)
def draw_meetings(met: Sequence[Meeting], basis: Basis | None = None) -> None:
    """Draw the crossover of two machines: the answer, the chart, the sizes, both fingerprints.

    Of several of one accelerator the first is drawn, the others are in the table of cost bases.
    """
    first = met[0]
    answered = st.container()
    basis = basis or study_view.basis()
    located = prepared.meeting(first, basis)
    with answered:
        study_view.headline(located.answer)
    st.caption(f"What is counted, {BASIS_TITLES[basis]}: {BASES[basis]}.")
    chart(first, located)
    if why := _cause(first, located):
        st.markdown(plain(why))
    _bases(met)
    st.markdown("**Size by size**, from two machines")
    study_view.sizes(located.answer)
    study_view.speedups(located)
    _fingerprints(first.measured[-1], first.recorded[-1])


def draw_so_far(met: Meeting) -> None:
    """Draw what two machines say while this one measures; raises CrossoverError where they cannot be compared."""
    located = prepared.meeting(met, "steady")
    if len(met.shared) > 1:
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")
    chart(met, located)


def chart(met: Meeting, located: Located) -> None:
    """Draw time against size of both machines, and which marks are whose."""
    study_view.chart(located)
    ours, theirs = met.measured[-1], met.recorded[-1]
    st.caption(
        plain(
            f"Two machines. Filled marks: measured on {_machine(ours)}. Hollow marks, dashed: {theirs.device_name}, "
            f"recorded on {_machine(theirs)}, {date(theirs.started_at)}."
        )
    )


def missing(rows: Sequence[Trial], axis: str, machine: Machine | None) -> str:
    """Why the chosen accelerator says nothing about rows, in a sentence; empty where none is chosen."""
    picked = chosen(machine)
    return _lacking(picked, recorded.of_row(rows[-1]), axis) if picked and rows else ""


def _say_what_it_has(accelerator: Accelerator, wanted: Wanted, axis: str) -> None:
    found = _exact(accelerator, wanted, axis)
    if found:
        newest = max(each.started_at for each in found)
        times = f" at {len(found)} sizes" if axis else ""
        st.caption(plain(f"This very training was recorded{times}, {date(newest)}, torch {found[0].versions[0]}."))
    else:
        st.caption(plain(_lacking(accelerator, wanted, axis)))
        for place, near in enumerate(recorded.nearest(accelerator, wanted, axis)):
            st.button(
                plain(f"Use {near.differs.replace(' instead of ', ', not ')}"),
                key=f"near-{place}",
                on_click=state.adopt,
                args=({name: near.recording.value(name) for name in TRAINING if name != axis},),
            )
    if other := recorded.refused(accelerator, wanted):
        st.caption(plain(other))


def _exact(accelerator: Accelerator, wanted: Wanted, axis: str) -> tuple[RecordedTraining, ...]:
    """Recordings of just this training; at two sizes or more where one is varied."""
    if axis:
        curve = recorded.along(accelerator, wanted, axis)
        return curve if len(curve) > 1 else ()
    match = recorded.matching(accelerator, wanted)
    return (match,) if match else ()


def _lacking(accelerator: Accelerator, wanted: Wanted, axis: str) -> str:
    said = f"No recording of this training by {accelerator.name} is here, so it is not shown."
    near = () if wanted.get("training") else recorded.nearest(accelerator, wanted, axis)
    return f"{said} Nearest, but not used: {'; '.join(map(_near, near))}." if near else said


def _near(near: Near) -> str:
    return f"{near.differs} ({near.sizes} sizes)" if near.sizes > 1 else near.differs


def _line(accelerator: Accelerator, wanted: Wanted, axis: str) -> dict[str, Any]:
    found, near = _exact(accelerator, wanted, axis), recorded.nearest(accelerator, wanted, axis)
    had = f"yes, {len(found)} sizes" if found and axis else "yes" if found else "no"
    return {
        "Accelerator": accelerator.name,
        "Device": accelerator.device,
        "Machine": accelerator.machine,
        "Rows": len(accelerator.recordings),
        "This configuration": had,
        "Nearest": "" if found or not near else _near(near[0]),
    }


@told(st.warning)
def _verdict(measured: Trial, other: Trial) -> None:
    found, why = two_machines.speedup(measured, other), two_machines.cause(other)
    key = f"across-{measured.trial_id}-{other.trial_id}"
    words = headings.verdict(found.words, key=key, help=SPEEDUP_HELP)
    if found.verdict != "missing" and why:
        words.markdown(plain(why))
    for said in found.cautions:
        words.caption(plain(said))


def _fingerprints(measured: Trial, other: Trial) -> None:
    label = "Two machines, two fingerprints"
    with st.expander(label, icon=":material/fingerprint:", **state.bound_view("fingerprints")) as part:
        if part.open:
            facts = two_machines.fingerprints(measured, other)
            lines = [{"": name, "Measured": ours, "Recorded": theirs} for name, ours, theirs in facts]
            tables.table(lines, height="content", alt="Fingerprints of both machines")


def _cause(met: Meeting, located: Located) -> str:
    """What the accelerator's step consists of at the shared size just below the crossing."""
    estimate = located.answer.estimate
    below = [row for row, _ in met.shared if estimate is not None and getattr(row, met.axis) <= estimate]
    other = next((other for row, other in met.shared if below and row is below[-1]), None)
    why = two_machines.cause(other) if other else ""
    return f"At {axis_title(met.axis)} {wording.size(getattr(other, met.axis))}: {why}" if why else ""


def _bases(met: Sequence[Meeting]) -> None:
    columns = {
        f"{titled(one.recorded[-1].contender)} recorded, against {titled(one.measured[-1].contender)}": partial(
            prepared.meeting, one
        )
        for one in met
    }
    study_view.bases(columns, met[0].axis, alt="The crossover of two machines on each cost basis")


def _machine(row: Trial) -> str:
    return f"{two_machines.machine(row)}, torch {row.torch_version}"
