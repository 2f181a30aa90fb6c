"""What Crossover shows: a sweep under way here or on other machines, opened and stored studies, custom timings."""

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import streamlit as st

from core import units
from core.answer import wording
from core.answer.gallery import trust
from core.answer.result import DECIDED, Outcome
from core.answer.study import Study
from core.answer.timings_csv import RolesUnclear, Timings
from core.errors import CrossoverError, StoreError
from core.jobs.job import Job, RemoteTarget
from core.jobs.machine import Machine
from core.jobs.shared.members import Spread
from core.progress import Progress, SweepProgress
from core.question import describe, experiment, models
from core.question.describe import simplify_number as plain_number
from core.question.devices import DEVICE_KINDS
from core.question.experiment import Contender, display_name
from core.question.fields import axis_title
from core.question.sweep import Sweep
from core.text import as_label
from pages.shared import (
    accelerators_view,
    controls,
    expectations,
    job_view,
    links,
    permits,
    queries,
    session,
    study_view,
    sweep_view,
    tables,
)
from pages.shared.cache import cache_answers
from pages.shared.queries import LocatedCrossover
from pages.shared.text import format_date, plain, show_errors

HERE = "This machine"
HIDDEN = "its address"
"""Stands for the address of a cluster where hosts are not named."""

SAME_MACHINE = {"cpu", "cpu@1"}
"""What is compared where no accelerator is: one thread against all of them."""

ACCELERATORS = tuple(
    dict.fromkeys(str(Contender.parse(kind.torch_type)) for kind in DEVICE_KINDS.values() if kind.torch_type != "cpu")
)
"""The first of each kind, whether this machine has one or not."""

SPREADS: dict[Spread, str] = {
    "everywhere": "The same question on every machine",
    "shared": "One sweep, shared among machines that are alike",
}
SPREAD_HELP = (
    "Every machine has a crossover of its own. Machines that are alike (processor, threads, memory, system) may share "
    "the sizes instead: it is faster, and they have one answer."
)
WHERE_HELP = "Other machines that share this store measure it, each by itself; times of two are never put together."
DEVICES_HELP = "What every machine is asked to compare. One that lacks a device says so, and the others go on."
NOT_SHARED = (
    "The host's settings name other machines, but results lie where no other machine sees them: start the app with "
    "`CROSSOVER_RESULTS` set to the address, or the folder, of a store that they share."
)


def choose_measuring_place() -> RemoteTarget | None:
    """Draw the choice of where a sweep is measured; None where that is here."""
    ways = permits.clusters()
    if not ways or queries.explain_no_runs():
        return None
    if not queries.is_store_shared():
        st.caption(NOT_SHARED)
        return None
    where = st.radio("Where", [HERE, *ways], format_func=_name_place, horizontal=True, help=WHERE_HELP, key="where")
    if where == HERE:
        return None
    spread: Spread = st.radio("How", list(SPREADS), format_func=SPREADS.__getitem__, help=SPREAD_HELP, key="spread")
    _describe_place(where)
    return RemoteTarget(on=where, spread=spread)


def choose_remote_devices() -> list[str]:
    """The control of devices of machines that are not this one: any that there are."""
    options = ["cpu", "cpu@1", *ACCELERATORS]
    members, _ = queries.list_machines()
    usual = ["cpu", "cuda:0"] if any(len(member.devices) > 1 for member in members) else sorted(SAME_MACHINE)
    chosen = st.multiselect(
        "Devices there",
        options,
        usual,
        max_selections=experiment.MAX_CONTENDERS,
        format_func=display_name,
        help=DEVICES_HELP,
        key="devices_there",
    )
    return sorted(chosen, key=(options if set(chosen) - SAME_MACHINE else sorted(SAME_MACHINE, reverse=True)).index)


def draw_remote_sweep(job: Job, request: Sweep) -> None:
    """Draw a sweep that other machines measure, as it is now."""
    now = job.progress or Progress(phase="The machines are asked.")
    left_s = now.sweep.remaining_s if now.sweep else None
    left = f" · about {units.format_rough_time(left_s)} left" if left_s is not None else ""
    st.progress(job.share, text=plain(f"{now.phase}{left}"))
    _draw_remote_results(job, request)


@show_errors(st.caption)
def _draw_remote_results(job: Job, request: Sweep) -> None:
    sweep_view.draw_machines_chart(queries.find_job_rows(job), request, job.machines, save=False)


def draw_remote_end(job: Job, request: Sweep, machine: Machine | None) -> None:
    """Draw what machines found, and what failed."""
    rows = queries.find_job_rows(job)
    job_view.draw_job_end(_hide_job_hosts(job), again=lambda: _draw_remote_again(job, request, machine))
    if not rows:
        sweep_view.draw_machines_table(job.machines)
        return
    words, place = st.columns([4, 1], vertical_alignment="center")
    with words:
        st.caption(plain(describe.describe_question(request)))
    if job.state == "finished":
        with place:
            if st.button("Ask again", icon=":material/replay:", width="stretch", help="For machines that came since."):
                _draw_remote_again(job, request, machine)
    sweep_view.draw_machines(rows, request, job.machines)


def _hide_job_hosts(job: Job) -> Job:
    """A job whose message names no host to those who may not see any."""
    said = sweep_view.hide_hosts(job.message, job.machines)
    where = job.elsewhere.on if job.elsewhere else ""
    if (host := urlsplit(where).netloc) and not permits.sees_hosts():
        said = said.replace(where, HIDDEN).replace(host, HIDDEN)
    return dataclasses.replace(job, message=said)


def _draw_remote_again(job: Job, request: Sweep, machine: Machine | None) -> None:
    if machine is not None:
        job_view.ask_question(request, machine, elsewhere=job.elsewhere)


def _name_place(way: str) -> str:
    """Where a sweep is measured, for people."""
    kind, _, which = way.partition(":")
    names = {"workers": "Machines that joined", "ray": "Ray cluster", "slurm": "Slurm"}
    said = which.removeprefix("//") + (" machines" if kind == "slurm" else "")
    if kind == "ray" and which and not permits.sees_hosts():
        there = [other for other in permits.clusters() if other.startswith("ray")]
        said = str(there.index(way) + 1) if way in there[1:] else ""
    return ", ".join(filter(None, (names.get(kind, way), said)))


def _describe_place(where: str) -> None:
    members, failure = queries.list_machines()
    if failure:
        st.warning(plain(failure))
    elif members:
        free = sum(member.state == "free" for member in members)
        st.caption(
            f"{units.format_quantity(len(members), 'machine')} there, {free} free. They are listed under Devices."
        )
    elif where == "workers":
        st.caption(sweep_view.NOBODY)


SHOWN_NOTES = 5
"""Notes shown while it runs, the newest; all of them are kept for the end."""


SAME = 1.2
"""Ratio of the ends of an estimate up to which one figure says as much."""


def draw_sweep_job(job: Job) -> None:
    """Draw a sweep that waits or runs, and keep it up to date until it ends."""
    if job.sweep:
        st.fragment(_draw_sweep_panel, run_every=job_view.REFRESH_S)(job.id, job.sweep)


def draw_sweep_notes(job: Job) -> None:
    """Draw what a sweep said of points without times, and why it ended."""
    said = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if len(said) == 1:
        st.caption(plain(said[0]))
    elif said:
        with st.expander(f"{len(said)} notes about the search"):
            for note in said:
                st.caption(plain(note))


def _draw_sweep_panel(job_id: str, request: Sweep) -> None:
    job = job_view.draw_job_head(job_id)
    if job and job.elsewhere:
        draw_remote_sweep(job, request)
    elif job:
        _draw_sweep_progress(request, job.progress or Progress(phase="starting"))
        _draw_sweep_so_far(job, request)


def _draw_sweep_progress(request: Sweep, progress: Progress) -> None:
    of = progress.sweep
    if of is None:
        st.progress(0.0, text=job_view.STARTING)
        return
    counted = (
        f"{units.format_quantity(of.done, 'size')} done" if request.adaptive else f"{of.done} of {of.total} points done"
    )
    if of.alive > 1:
        counted += f", {of.alive} under way ({of.pairs} of {of.alive * of.pairs_each} pairs)"
    now = f"now {plain(of.size_label)}, {plain(progress.phase)}" if of.size_label else plain(progress.phase)
    st.progress(
        _measure_share(of, progress.elapsed_s, adaptive=request.adaptive),
        text=f"**{counted}** · {now}{_describe_sweep_time_left(of)}",
    )
    steps = [
        f"{plain(display_name(contender.contender))} {units.format_duration(contender.step_s)} a step"
        for contender in progress.contenders
        if contender.step_s is not None
    ]
    if steps:
        st.caption(" · ".join(steps))
    for note in of.notes[-SHOWN_NOTES:]:
        st.caption(plain(note))


def _describe_sweep_time_left(progress: SweepProgress) -> str:
    """The time that is left, as a range where how many sizes a search needs is not known."""
    if progress.remaining_s is None:
        return ""
    if progress.least_s is None or progress.remaining_s < SAME * progress.least_s:
        return f" · about {units.format_rough_time(progress.remaining_s)} left"
    return (
        f" · about {units.format_rough_time(progress.least_s)} to {units.format_rough_time(progress.remaining_s)} left"
    )


def _measure_share(progress: SweepProgress, elapsed_s: float, *, adaptive: bool) -> float:
    """Share that is done: of a search, which may end at any size, of the time that it is expected to take."""
    if not adaptive or progress.remaining_s is None or not elapsed_s:
        return progress.share if not adaptive else 0.0
    return elapsed_s / (elapsed_s + ((progress.least_s or 0.0) + progress.remaining_s) / 2)


@show_errors(st.caption)
def _draw_sweep_so_far(job: Job, request: Sweep) -> None:
    axis = request.axes[0].name
    rows = queries.find_job_rows(job)
    found = study_view.pick_main_study(queries.group_studies(rows, axis), request)
    if met := accelerators_view.find_meetings(rows, axis, queries.read_machine()):
        accelerators_view.draw_meeting_so_far(met[0])
    if found is None:
        return
    located = queries.locate_crossover(found, "steady")
    if len(found.runs) > 1:
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")
    study_view.draw_crossover_chart(located)


AIM = "Vary one training, and find the size from which one device is faster than another."
NO_ACCELERATOR = (
    "No accelerator is seen here, so one thread of the CPU meets all of them. That is a crossover too: sharing a step "
    "among threads costs time, as copying and launching on a GPU do, and pays off from some size on."
)


def draw_aim(machine: Machine | None) -> None:
    """Say what the page is for, and what it finds on a machine without an accelerator."""
    alone = machine is not None and len(machine.devices) == 1 and not session.read_accelerator()
    st.caption(f"{AIM} {NO_ACCELERATOR}" if alone else AIM)


def draw_unknown_link(sentence: str) -> None:
    """Say that a link leads to nothing here, and offer what is under way instead."""
    st.warning(sentence)
    job_view.offer_running_jobs(sweeps=True)


def adopt_sweep_view(view: tuple[links.Kind, str] | None, machine: Machine | None) -> None:
    """Set the controls as the study or the job that a link opens was asked for, if the link says nothing of that."""
    controls.adopt_view(view, machine, _make_sweep_values)


def _make_sweep_values(kind: links.Kind, name: str, machine: Machine) -> Mapping[str, Any]:
    asked = queries.open_queue().job(name).sweep if kind == "job" else None
    shown = asked or (_read_study_sweep(name) if kind == "study" else None)
    values = _make_sweep_controls(shown, machine) if shown else {}
    return {**values, "adaptive": asked.adaptive} if asked and values else values


def open_study(study_id: str, machine: Machine | None) -> None:
    """Open a study and set the controls as it was measured; from a callback."""
    shown = _read_study_sweep(study_id) if machine else None
    if shown and machine:
        session.adopt_values(_make_sweep_controls(shown, machine))
    session.show_view("study", study_id)


def draw_sweep_differences(request: Sweep | None, reference: Sweep | None) -> None:
    """Say where the settings ask for something else than what is shown below."""
    machine = queries.read_machine() if request and reference else None
    if request and reference and machine:
        controls.draw_differences(_compare_sweeps(request, reference), _make_sweep_controls(reference, machine))


@show_errors(st.warning)
def draw_known_study(request: Sweep | None, machine: Machine | None) -> None:
    """Draw the study of this machine that measured what the settings ask for before, if there is one."""
    try:
        line = expectations.find_matching_study(request, machine.local_machine) if request and machine else None
        study = queries.find_study(line.id) if line else None
    except StoreError:  # which the list of recorded studies says
        return
    if study is not None:
        st.caption(
            plain(f"Measured here before, on {format_date(study.newest)}; the settings ask for the same training.")
        )
        study_view.draw_crossover_answer(study)


def _read_study_sweep(study_id: str) -> Sweep | None:
    try:
        found = queries.find_study(study_id)
    except CrossoverError:
        return None
    return sweep_view.find_sweep_of_study(found) if found else None


def _make_sweep_controls(reference: Sweep, machine: Machine) -> Mapping[str, Any]:
    """The values of the page's controls that ask for a sweep, as far as this machine can be asked for it."""
    first, point = reference.axes[0], reference.point
    values = controls.make_point_values(point, [axis.name for axis in reference.axes])
    if not values:
        return {}
    values |= {} if point.training else {"axis": first.name}
    values |= {
        links.RANGE.format(axis=first.name): (plain_number(first.values[0]), plain_number(first.values[-1])),
    }
    values |= {"also": [axis.name for axis in reference.axes[1:]], "lanes": []}
    values |= {links.VALUES.format(axis=axis.name): list(axis.values) for axis in reference.axes[1:]}
    if all(contender.device in machine.device_names for contender in reference.contenders):
        values |= {"contenders": [str(contender) for contender in reference.contenders], "fair": False}
    return values


def _compare_sweeps(request: Sweep, reference: Sweep) -> list[controls.Difference]:
    """What differs but the sizes."""
    if request.point.training != reference.point.training:
        return controls.compare_points(request.point, reference.point)
    if request.axes[0].name != reference.axes[0].name:
        return [("along", axis_title(request.axes[0].name), axis_title(reference.axes[0].name))]
    varied = {axis.name for axis in (*request.axes, *reference.axes)}
    without = varied | (set(models.AXES) if "parameters" in varied else set())
    return [
        *controls.compare_points(request.point, reference.point, without),
        *controls.compare_contenders(request.contenders, reference.contenders),
    ]


TIMINGS_FORMATS = ("csv", "tsv", "txt")
"""How a file of timings may be called; what is in it tells how it is read."""

MAX_TIMINGS_BYTES = 1_000_000
"""Largest text that is taken in the text area, in characters; a file may have as much as the server takes."""

WHOLE = ("Along", "Crossover", "Devices")
"""Columns of the list that are wide enough for all that they say; what is right of them is scrolled to."""

MAX_STUDIES = 20
"""Studies that are listed with what they say, which needs all their rows."""

SAMPLE = "size,device,seconds\n" + "".join(
    f"{size},{device},{seconds}\n"
    for size, cpu, gpu in (
        (100, (0.11, 0.12, 0.11), (0.50, 0.52, 0.51)),
        (400, (0.24, 0.25, 0.24), (0.51, 0.50, 0.52)),
        (1600, (0.93, 0.95, 0.94), (0.55, 0.57, 0.56)),
        (6400, (3.70, 3.75, 3.72), (0.80, 0.83, 0.81)),
    )
    for device, times in (("cpu", cpu), ("gpu", gpu))
    for seconds in times
)
"""A file as it is read: four sizes, two devices, three readings of each. The numbers are made up."""


@show_errors()
def draw_studies_table(machine: Machine | None) -> None:
    """Every study that is stored here or came with the app; selecting one puts it into the link."""
    lines = queries.list_study_lines()
    with st.spinner("Reading the recorded studies…"):
        found = _sort_studies(list(queries.find_studies(lines[:MAX_STUDIES]).values()))
    if not found:
        st.caption("No sweep is stored yet. The first one that you run appears here.")
        return
    st.markdown("**Recorded here or shipped with the app**, decided and trusted ones first. Select one to see it.")
    shown = _make_study_lines(found)
    tables.draw_table(
        shown,
        column_config={
            name: st.column_config.TextColumn(width=tables.measure_column(shown.column(name).to_pylist()))
            for name in WHOLE
        },
        key="studies",
        on_select=lambda: _select_study(found, machine),
        selection_mode="single-row",
        height="content" if len(found) <= study_view.MAX_SIZE_LINES else 35 * study_view.MAX_SIZE_LINES,
        alt="Recorded studies",
    )
    if len(lines) > MAX_STUDIES:
        st.caption(f"These are the {MAX_STUDIES} with the most sizes; all {len(lines):,} are in the Gallery.")


def draw_custom_timings() -> None:
    """Anyone's own timings, from a file or pasted, and the answer that they give."""
    with st.expander("Your own timings", icon=":material/upload_file:", **session.bind_view("timings")):
        st.caption(
            "Any times of two devices at several sizes: a table with the columns size, device and seconds, one row a "
            "reading, or with a size and a column for each device, such as `size,cpu (ms),gpu (ms)`. Two readings or "
            "more at each size tell the noise, and with it the interval. Nothing is stored."
        )
        file = None if permits.may_upload() else st.file_uploader("CSV file", type=TIMINGS_FORMATS, key="timings_file")
        pasted = st.text_area(
            "Or paste it here", key="timings_text", max_chars=MAX_TIMINGS_BYTES, placeholder=SAMPLE[:60]
        )
        st.download_button("A sample", SAMPLE, "timings.csv", "text/csv", on_click="ignore", icon=":material/download:")
        if file is not None:
            _draw_timings(file.getvalue(), file.name)
        elif pasted.strip():
            _draw_timings(pasted.encode(), "The text")


@show_errors()
def _draw_timings(data: bytes, name: str) -> None:
    read = _read_timings(data, name)
    if read is None:
        return
    timings, located = read
    for note in timings.notes:
        st.caption(plain(note))
    study_view.draw_headline(located.answer)
    study_view.draw_crossover_chart(located)
    study_view.draw_sizes_table(located.answer)
    study_view.draw_speedup_chart(located)


def _read_timings(data: bytes, name: str) -> tuple[Timings, LocatedCrossover] | None:
    """What a table says; None while it is asked which of its devices is set against which."""
    try:
        return queries.locate_timings(data, name)
    except RolesUnclear as unclear:
        roles = _choose_roles(unclear.devices)
        return queries.locate_timings(data, name, roles) if roles else None


def _choose_roles(devices: tuple[str, ...]) -> tuple[str, str] | None:
    """Which device is set against which, asked where their names do not say it; None until it is chosen."""
    st.caption("The names do not say which device is set against which.")
    columns, asked = st.columns(2), {"baseline": "The CPU, or what stands for it", "challenger": "Set against it"}
    chosen = [
        column.selectbox(words, devices, index=None, format_func=as_label, key=f"timings_{role}")
        for column, (role, words) in zip(columns, asked.items(), strict=True)
    ]
    return (chosen[0], chosen[1]) if chosen[0] and chosen[1] else None


@cache_answers(4)
def _sort_studies(studies: list[Study]) -> list[Study]:
    """Those that are decided first, and of these the trusted ones; else as they were."""
    levels = list(trust.LEVELS)

    def rank(study: Study) -> tuple[bool, int]:
        rows = [row for run in study.runs for row in run]
        return _find_outcome(study) not in DECIDED, levels.index(trust.trust_mark(rows).level)

    return sorted(studies, key=rank)


def _find_outcome(study: Study) -> Outcome | None:
    """What a study says; None where its rows cannot be compared."""
    try:
        return queries.locate_crossover(study, "steady").answer.outcome
    except CrossoverError:
        return None


@cache_answers(4)
def _make_study_lines(studies: list[Study]) -> pa.Table:
    return pa.Table.from_pylist([_make_study_line(study) for study in studies])


def _make_study_line(study: Study) -> dict[str, str]:
    row, sizes = study.runs[0][0], study.sizes
    return {
        "Along": axis_title(study.axis),
        "Crossover": study_view.summarize_located(lambda: queries.locate_crossover(study, "steady")),
        "Devices": f"{display_name(study.challenger)} against {display_name(study.baseline)}",
        "From … to": f"{wording.format_size(sizes[0])} to {wording.format_size(sizes[-1])} ({len(sizes)} sizes)",
        "Training": describe.describe_training(row) + ("" if row.training else f", batch {row.batch_size:,}"),
        "Machine": f"{row.cpu_name} ({row.machine_id[:6]})",
    }


def _select_study(studies: list[Study], machine: Machine | None) -> None:
    if rows := session.read_selected_rows("studies"):
        open_study(studies[rows[0]].id, machine)
