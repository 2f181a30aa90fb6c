"""The result side of Explore: how it works, a running sweep, the result that a link names, and next steps.

Below a result it lists stored studies and custom timings.
"""

import dataclasses
from collections.abc import Sequence
from urllib.parse import urlsplit

import pyarrow as pa
import streamlit as st

from core import units
from core.answer import wording
from core.answer.gallery import trust
from core.answer.judgement import DECIDED, Outcome
from core.answer.study import Study
from core.answer.timings_csv import RolesUnclear, Timings
from core.errors import CrossoverError, StoreError
from core.jobs.cluster_machine import Spread
from core.jobs.job import Job, RemoteTarget
from core.jobs.machine import Machine
from core.progress import Progress, SweepProgress
from core.question import describe, experiment
from core.question.experiment import Contender, Experiment, display_name
from core.question.fields import axis_title
from core.question.lanes import DEVICE_KINDS
from core.question.sweep import Sweep, size_axes
from core.results.schema import Trial
from core.text import as_label
from pages.explore import shown_settings
from pages.shared import (
    accelerators_view,
    controls,
    elements,
    expectations,
    job_view,
    layout,
    links,
    permits,
    queries,
    run_view,
    session,
    study_view,
    sweep_view,
)
from pages.shared.cache import cache_answers
from pages.shared.elements import format_date, plain, show_errors
from pages.shared.queries import LocatedCrossover

HERE = "This machine"
HIDDEN = "its address"
"""Replacement for the address of a cluster if hosts are hidden."""

SAME_MACHINE = {"cpu", "cpu@1"}
"""Devices compared without an accelerator: all CPU threads and one thread."""

ACCELERATORS = tuple(
    dict.fromkeys(str(Contender.parse(kind.torch_type)) for kind in DEVICE_KINDS.values() if kind.torch_type != "cpu")
)
"""The first device of each kind of accelerator, whether or not this machine has one."""

SPREADS: dict[Spread, str] = {
    "everywhere": "Every machine measures all points",
    "shared": "Machines of one kind share the points",
}
SPREAD_HELP = (
    "Every machine has a crossover of its own. Machines of one kind (processor, threads, memory, system) may share the "
    "points instead: that is faster, and gives one crossover for them."
)
WHERE_HELP = "Each machine of a Ray cluster measures separately. Times of different machines are never combined."
DEVICES_HELP = "Devices that every machine compares. A machine that lacks one reports it, and the others continue."


def choose_measuring_place() -> RemoteTarget | None:
    """Draw the choice of where a sweep is measured; return None for this machine."""
    ways = permits.clusters()
    if not ways or queries.explain_no_runs():
        return None
    where = st.radio("Where", [HERE, *ways], format_func=_name_place, horizontal=True, help=WHERE_HELP, key="where")
    if where == HERE:
        return None
    spread: Spread = st.radio("How", list(SPREADS), format_func=SPREADS.__getitem__, help=SPREAD_HELP, key="spread")
    return RemoteTarget(on=where, spread=spread)


def choose_remote_devices() -> list[str]:
    """Draw the choice of devices on other machines, of every kind that exists."""
    options = ["cpu", "cpu@1", *ACCELERATORS]
    has_more = any(len(machine.devices) > 1 for machine in queries.list_cluster_machines())
    usual = ["cpu", "cuda:0"] if has_more else sorted(SAME_MACHINE)
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
    """Draw the present state of a sweep that a cluster measures."""
    now = job.progress or Progress(phase="Contacting the cluster")
    left_s = now.sweep.remaining_s if now.sweep else None
    left = f" · about {units.format_rough_time(left_s)} left" if left_s is not None else ""
    st.progress(job.share, text=plain(f"{now.phase}{left}"))
    _draw_remote_results(job, request)


@show_errors(st.caption)
def _draw_remote_results(job: Job, request: Sweep) -> None:
    sweep_view.draw_machines_chart(queries.find_job_rows(job), request, job.machines, save=False)


def draw_remote_end(job: Job, request: Sweep, machine: Machine | None) -> None:
    """Draw the results of the machines of a cluster, and the failures."""
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
            if st.button(
                "Ask again", icon=":material/replay:", width="stretch", help="Finds machines that joined since."
            ):
                _draw_remote_again(job, request, machine)
    sweep_view.draw_machines(rows, request, job.machines)


def _hide_job_hosts(job: Job) -> Job:
    """Return the job with all hosts in its message replaced, if the visitor may not see hosts."""
    said = sweep_view.hide_hosts(job.message, job.machines)
    where = job.elsewhere.on if job.elsewhere else ""
    if (host := urlsplit(where).netloc) and not permits.sees_hosts():
        said = said.replace(where, HIDDEN).replace(host, HIDDEN)
    return dataclasses.replace(job, message=said)


def _draw_remote_again(job: Job, request: Sweep, machine: Machine | None) -> None:
    if machine is not None:
        job_view.ask_question(request, machine, elsewhere=job.elsewhere)


def _name_place(way: str) -> str:
    """Return the label of the place where a sweep is measured."""
    if way == HERE:
        return way
    said = way.removeprefix("ray").removeprefix("://")
    if said and not permits.sees_hosts():
        there = permits.clusters()
        said = str(there.index(way) + 1) if way in there[1:] else ""
    return ", ".join(filter(None, ("Ray cluster", said)))


SHOWN_NOTES = 5
"""Number of newest notes shown while a sweep runs; at the end all are shown."""


SAME = 1.2
"""Ratio of the ends of an estimate below which a single figure is shown."""


def draw_sweep_job(job: Job) -> None:
    """Draw a sweep that waits or runs, and keep it up to date until it ends."""
    if job.sweep:
        st.fragment(_draw_sweep_panel, run_every=job_view.REFRESH_S)(job.id, job.sweep)


def draw_sweep_notes(job: Job) -> None:
    """Draw the notes of a sweep about points without times, and why it ended."""
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
        job_view.draw_machine_note(job)
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
    """Return the remaining time, as a range while the number of sizes of a search is open."""
    if progress.remaining_s is None:
        return ""
    if progress.least_s is None or progress.remaining_s < SAME * progress.least_s:
        return f" · about {units.format_rough_time(progress.remaining_s)} left"
    return (
        f" · about {units.format_rough_time(progress.least_s)} to {units.format_rough_time(progress.remaining_s)} left"
    )


def _measure_share(progress: SweepProgress, elapsed_s: float, *, adaptive: bool) -> float:
    """Return the finished share of a sweep; of a search, which may end at any size, the share of the expected time."""
    if not adaptive or progress.remaining_s is None or not elapsed_s:
        return progress.share if not adaptive else 0.0
    return elapsed_s / (elapsed_s + ((progress.least_s or 0.0) + progress.remaining_s) / 2)


@show_errors(st.caption)
def _draw_sweep_so_far(job: Job, request: Sweep) -> None:
    """Draw the answer from the sizes so far; their chart is the picture at the top of the page."""
    axis = request.axes[0].name
    rows = queries.find_job_rows(job)
    found = study_view.pick_main_study(queries.group_studies(rows, axis), request)
    if met := accelerators_view.find_meetings(rows, axis, queries.read_machine()):
        accelerators_view.draw_meeting_so_far(met[0])
    if found is not None and len(found.runs) > 1:
        located = queries.locate_crossover(found, "steady")
        st.markdown(f"**So far:** {plain(located.answer.sentence)}")


WELCOME = """
1. **Set** up a training; its cost is shown as you change it.
2. **Run** trains it on every chosen device in turn{alike}. A range of sizes finds where the faster device changes.
3. **Read** which device is faster, by how much (with an interval), why, and whether both learned the same.

The measurement runs in a separate process, so you may close this page and come back. The same settings then show their
stored result at once. A result that was inconclusive or holds only for a loaded machine is measured again.
"""

ALIKE = ", from the same weights and with the same batches"

WITHOUT_ACCELERATOR = (
    "So Crossover compares one CPU thread with all of them. The same trade-off applies: splitting a step across "
    "threads has a fixed cost and pays off only above some size. With a GPU, Crossover compares CPU and GPU."
)
RECORDED = (
    "So Crossover times the training on this CPU and compares it with the recorded accelerator that you chose, of "
    "another machine."
)
CROSSOVER_HELP = "Find the size of this model from which the other device is faster. The other settings stay the same."


def choose_sizes() -> str:
    """Draw the choice between one size and a range; the chosen devices stay."""
    bound = session.bind_choice("sizes", list(links.SIZES), "one", links.SIZES.__getitem__)
    bound["on_change"] = _carry_devices
    return st.segmented_control("Measure", list(links.SIZES), required=True, width="stretch", **bound) or "one"


def _carry_devices() -> None:
    session.note_change("sizes")
    keys = ("devices", "contenders")
    session.carry_choice(*(keys if session.read_value("sizes") == "range" else reversed(keys)))


def draw_welcome(machine: Machine | None, *, is_custom: bool = False) -> None:
    """Draw how the page works, also for a custom script, and what is missing without an accelerator."""
    st.header("How this works")
    st.markdown(WELCOME.format(alike="; it is built anew for each" if is_custom else ALIKE))
    if machine and len(machine.devices) == 1:
        instead = RECORDED if session.read_accelerator() else WITHOUT_ACCELERATOR
        st.info(f"**No accelerator found.** {plain(machine.hint)}\n\n{instead}")
    controls.invite_custom_training()


def is_new_question(request: Experiment | None, view: tuple[links.Kind, str] | None) -> bool:
    """Return whether the settings request a different training from the shown run, or no result is shown."""
    if request is None or view is None:
        return view is None
    shown = queries.find_rows(run_ids=[view[1]]) if view[0] == "run" else []
    known = run_view.make_run_question(shown) if shown else None
    return known is not None and known.point != request.point


def draw_unknown_link(sentence: str) -> None:
    """Draw that a link leads to no result on this machine, and offer the running jobs instead."""
    st.warning(sentence)
    job_view.offer_running_jobs()


@show_errors(st.warning)
def draw_known_study(request: Sweep | None, machine: Machine | None) -> None:
    """Draw the stored study of this machine for the current settings, if there is one."""
    try:
        line = expectations.find_matching_study(request, machine.local_machine) if request and machine else None
        study = queries.find_study(line.id) if line else None
    except StoreError:  # the list of recorded studies shows it
        return
    if study is not None:
        st.caption(plain(f"Measured here on {format_date(study.newest)} with the same settings."))
        study_view.draw_crossover_answer(study)


def draw_next_steps(trials: Sequence[Trial], reference: Experiment | None, machine: Machine | None) -> None:
    """Draw the next steps, in a row."""
    with st.container(horizontal=True, key="onward"):
        draw_again(trials, machine)
        if reference:
            draw_crossover_link(reference)


def draw_crossover_link(reference: Experiment) -> None:
    """Lead to the sizes of a model at which the answer changes, with the settings of one."""
    point = reference.point
    if point.training or len(reference.contenders) < 2:
        return
    if st.button("Find the crossover", icon=":material/timeline:", width="stretch", help=CROSSOVER_HELP):
        varied = size_axes(point.model, point.dataset)[:1]
        link: dict[str, str | list[str]] = {
            n: value for n, value in links.make_brief_link(point).items() if n not in varied
        }
        link |= {"contenders": [str(contender) for contender in reference.contenders], "fair": "false"}
        link |= {"sizes": "range"}
        session.restart_page("explore", link)
        st.switch_page(layout.EXPLORE, query_params=link)


def draw_again(trials: Sequence[Trial], machine: Machine | None) -> None:
    """Offer to measure a result once more, on the machine that measured it."""
    asked = run_view.make_run_question(trials)
    if asked and machine and trials[0].machine_id != machine.environment.machine_id:
        st.caption("Measured on another machine")
    else:
        job_view.draw_again_button(asked, machine)
        job_view.draw_continue_button(asked, machine)


TIMINGS_FORMATS = ("csv", "tsv", "txt")
"""Extensions of timing files; the content of a file decides its format."""

MAX_TIMINGS_BYTES = 1_000_000
"""Limit of the text area, in characters; for a file, the server's limit holds."""

WHOLE = ("Vary", "Crossover", "Devices")
"""Columns wide enough for their longest text; the columns to their right need scrolling."""

MAX_STUDIES = 20
"""Maximum number of listed studies; the answer of each needs all its rows."""

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
"""Example of a timing file: four sizes, two devices, three readings of each. The numbers are made up."""


@show_errors()
def draw_studies_table(machine: Machine | None) -> None:
    """Draw the table of stored and shipped studies; selecting one opens it and puts it into the link."""
    lines = queries.list_study_lines()
    with st.spinner("Reading the recorded studies…"):
        found = _sort_studies(list(queries.find_studies(lines[:MAX_STUDIES]).values()))
    if not found:
        st.caption("No sweep is stored yet. The first one that you run appears here.")
        return
    st.markdown("**Measured here or shipped with the app**, decided and trusted ones first. Select a study to see it.")
    shown = _make_study_lines(found)
    elements.draw_table(
        shown,
        column_config={
            name: st.column_config.TextColumn(width=elements.measure_column(shown.column(name).to_pylist()))
            for name in WHOLE
        },
        key="studies",
        on_select=lambda: _select_study(found, machine),
        selection_mode="single-row",
        height="content" if len(found) <= study_view.MAX_SIZE_LINES else 35 * study_view.MAX_SIZE_LINES,
        alt="Recorded studies",
    )
    if len(lines) > MAX_STUDIES:
        st.caption(f"These are the {MAX_STUDIES} studies with the most sizes. All {len(lines):,} are in the Gallery.")


def draw_custom_timings() -> None:
    """Draw the upload of custom timings, from a file or pasted, and their answer."""
    with st.expander("Your own timings", icon=":material/upload_file:", **session.bind_view("timings")):
        st.caption(
            "Any times of two devices at several sizes: a table with the columns size, device and seconds, one row per "
            "reading, or with a size and a column for each device, such as `size,cpu (ms),gpu (ms)`. The noise and the "
            "interval need two or more readings at each size. Nothing is stored."
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
    """Return the answer of a table; None while the choice of its devices is open."""
    try:
        return queries.locate_timings(data, name)
    except RolesUnclear as unclear:
        roles = _choose_roles(unclear.devices)
        return queries.locate_timings(data, name, roles) if roles else None


def _choose_roles(devices: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the pair of devices, chosen by the visitor if their names leave it open; None until then."""
    st.caption("The names do not show which device is the baseline.")
    columns, asked = st.columns(2), {"baseline": "Baseline (usually the CPU)", "challenger": "Challenger"}
    chosen = [
        column.selectbox(words, devices, index=None, format_func=as_label, key=f"timings_{role}")
        for column, (role, words) in zip(columns, asked.items(), strict=True)
    ]
    return (chosen[0], chosen[1]) if chosen[0] and chosen[1] else None


@cache_answers(4)
def _sort_studies(studies: list[Study]) -> list[Study]:
    """Sort decided studies first, of these the trusted ones first, and keep the order otherwise."""
    levels = list(trust.LEVELS)

    def rank(study: Study) -> tuple[bool, int]:
        rows = [row for run in study.runs for row in run]
        return _find_outcome(study) not in DECIDED, levels.index(trust.trust_mark(rows).level)

    return sorted(studies, key=rank)


def _find_outcome(study: Study) -> Outcome | None:
    """Return the outcome of a study; None if its rows cannot be compared."""
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
        "Vary": axis_title(study.axis),
        "Crossover": study_view.summarize_located(lambda: queries.locate_crossover(study, "steady")),
        "Devices": f"{display_name(study.challenger)} against {display_name(study.baseline)}",
        "From … to": f"{wording.format_size(sizes[0])} to {wording.format_size(sizes[-1])} ({len(sizes)} sizes)",
        "Training": describe.describe_training(row) + ("" if row.training else f", batch {row.batch_size:,}"),
        "Machine": f"{row.cpu_name} ({row.machine_id[:6]})",
    }


def _select_study(studies: list[Study], machine: Machine | None) -> None:
    if rows := session.read_selected_rows("studies"):
        shown_settings.open_study(studies[rows[0]].id, machine)
