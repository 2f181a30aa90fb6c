"""Handouts: reports of a lesson, tutorial or case, and of a published study, as Markdown or HTML.

A handout is sections of sentences, tables and charts. The page and the handout show the same sections, so they cannot
differ. A published study is its figures as a table, and a handout; both name the publisher and the date. Nothing here
measures or computes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ... import units
from ...errors import CrossoverError
from ...question.experiment import display_name
from ...results.schema import Trial
from ...text import as_line, as_lines, to_html, to_markdown
from ..charts import gallery_charts
from ..gallery.published import PublishedStudy
from ..lessons.outcomes import Section, SectionFigure, SectionTable
from . import rendering
from .rendering import fill_template
from .report import size_figures


@dataclass(frozen=True, kw_only=True)
class HandoutReply:
    """A question with the student's answer; empty without one."""

    question: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Handout:
    """A student's report: predictions, shown results, answers, and the machine."""

    title: str
    student: str
    date: str
    link: str
    predictions: tuple[HandoutReply, ...]
    sections: tuple[Section, ...]
    answers: tuple[HandoutReply, ...]
    machine: tuple[tuple[str, str], ...]

    @property
    def byline(self) -> str:
        """Name of the student, and the date."""
        return f"{self.student.strip() or 'No name given'}, {self.date}"


def handout_environment(trials: Sequence[Trial]) -> tuple[tuple[str, str], ...]:
    """Return the environment of rows, one line per fact, with all values if the rows differ."""
    columns: dict[str, list[str]] = {
        "Processor": [trial.cpu_name for trial in trials],
        "Threads usable": [f"{trial.cores_usable} of {trial.cores}" for trial in trials],
        "Memory": [units.format_memory(trial.memory_bytes) for trial in trials],
        "System": [trial.system for trial in trials],
        "Devices": [f"{display_name(trial.contender)}: {trial.device_name}" for trial in trials],
        "torch": [trial.torch_version for trial in trials],
        "Crossover": [f"{trial.app_version} {trial.app_commit}".strip() for trial in trials],
        "Machine id": [trial.machine_id for trial in trials],
        "Measured": [min(t.started_at for t in trials), max(t.started_at for t in trials)] if trials else [],
        "Runs": [trial.run_id for trial in trials],
    }
    return tuple((name, ", ".join(dict.fromkeys(values))) for name, values in columns.items() if any(values))


_ADDRESS = re.compile(r"https?://[^\s<>]+")


_FENCE = re.compile(r"`{3,}")


CHART_WIDTH = 640
"""Width of a chart on paper, in pixels; on a page the chart has the width of its container."""


NOT_DRAWN = "This chart cannot be shown as an image; the table below has its figures."


def handout_markdown(handout: Handout) -> str:
    """Return the handout as Markdown."""
    functions = {"in_markdown": to_markdown, "lines": _lines, "fenced": _fence_code}
    return fill_template("handout.md.j2", to_markdown, handout=handout, link=_link(handout.link), **functions)


def handout_html(handout: Handout) -> str:
    """Return the handout as one HTML file that loads nothing from elsewhere and runs no script."""
    drawn = iter(_draw_figures([figure for section in handout.sections for figure in section.figures]))
    sections = [(section, [(figure, next(drawn)) for figure in section.figures]) for section in handout.sections]
    return fill_template("handout.html.j2", to_html, handout=handout, sections=sections)


def _draw_figures(figures: Sequence[SectionFigure]) -> list[str]:
    """Convert charts to SVG with the width of a page of paper; return a sentence for each chart if that fails."""
    try:
        return rendering.draw_svgs([figure.spec for figure in figures], CHART_WIDTH)
    except CrossoverError:
        return [f"<p>{NOT_DRAWN}</p>"] * len(figures)


def _lines(text: str) -> list[str]:
    """Return the lines of a reply that are not empty."""
    return [line for line in as_lines(text).splitlines() if line.strip()] or ["No reply."]


def _fence_code(text: str, language: str) -> str:
    """Return lines between fences that are longer than any fence within the lines."""
    shown = as_lines(text)
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(shown))])
    return f"{fence}{language}\n{shown}\n{fence}"


def _link(address: str) -> str:
    """Return a web address as a link, and any other text unchanged."""
    return f"Link: <{address}>" if _ADDRESS.fullmatch(address) else to_markdown(f"Link: {address}")


def study_csv(study: PublishedStudy) -> str:
    """Return the figures of a study as a CSV that names the authors in comments and that the app can import."""
    source = study.source
    said = {
        "": f"{study.title}: seconds per {study.per} by {study.axis}",
        "Published by": source.cited,
        "Address": source.address,
        "Licence": source.licence,
        "CPU": source.cpu,
        "GPU": source.gpu,
        "How": source.note,
        "Unknown": source.unknown,
    }
    comments = [f"# {name}{': ' if name else ''}{as_line(text, 1_000)}" for name, text in said.items() if text]
    readings = [
        f"{entry.size:.10g},{device},{seconds:.10g}"
        for entry in study.evidence
        for device, times in (("cpu", entry.baseline_s), ("gpu", entry.challenger_s))
        for seconds in times
    ]
    return "\n".join([*comments, "size,device,seconds", *readings]) + "\n"


def study_report(study: PublishedStudy, link: str) -> Handout:
    """Build a report of the study: its result, its machines, its publisher and its licence."""
    source = study.source
    quoted = (
        source.note,
        *((f"Unknown: {source.unknown}",) if source.unknown else ()),
        f"Licence: {source.licence}." if source.licence else "Single figures, quoted with their source.",
    )
    header = (study.axis[:1].upper() + study.axis[1:], "CPU", "GPU", "Speedup of the GPU", "95 % interval")
    table = SectionTable(title="Size by size", header=header, rows=tuple(map(size_figures, study.answer.sizes)))
    chart = SectionFigure(title=f"Time of one {study.per}", spec=gallery_charts.chart_published_study(study))
    shown = Section(
        title="Published figures",
        sentences=(study.headline, *study.answer.cautions),
        figures=(chart,),
        tables=(table,),
    )
    whose = Section(title="Source of the figures", sentences=(f"{study.mark}.", source.address, *quoted))
    return Handout(
        title=study.title,
        student=source.name,
        date=source.date or "undated",
        link=link,
        predictions=(),
        sections=(shown, whose),
        answers=(),
        machine=(("CPU", source.cpu), ("GPU", source.gpu)),
    )
