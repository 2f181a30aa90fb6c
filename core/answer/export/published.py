"""A published study as a file: its figures as a table, and a report; both name the publisher and the date."""

from ...text import as_line
from ..charts import gallery_charts
from ..gallery.published import PublishedStudy
from ..lessons.section import Section, SectionFigure, SectionTable
from .lesson_report import Handout
from .report import size_figures


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
