"""What the front page shows: a stored study that crosses, and a published one; in words for people."""

from dataclasses import dataclass, replace
from typing import Any

from core.answer import wording
from core.answer.charts import study_charts
from core.answer.gallery.overview import StudyLine
from core.answer.gallery.published import load_published_studies
from core.answer.result import Crossover
from core.errors import CrossoverError
from core.question.experiment import Contender
from core.question.fields import value_label
from pages.shared import queries
from pages.shared.cache import cache_answers
from pages.shared.text import format_date

MAX_READ_STUDIES = 12
"""Studies that are answered to find one that crosses; the others wait for the Gallery."""

PUBLISHED = "xgboost"


@dataclass(frozen=True, kw_only=True)
class ShownAnswer:
    """An answer with its chart.

    Attributes:
        sentence: the answer.
        source: what was trained, where, when, and who measured it.
        chart: finished.
        study: its name in the Gallery.
    """

    sentence: str
    source: str
    chart: dict[str, Any]
    study: str


def find_stored_answer() -> ShownAnswer | None:
    """A study of this machine's store or of the gallery, an accelerator's before all others; None if none crosses."""
    return _find_first_crossing(queries.list_study_lines())


@cache_answers(1)
def find_published_answer() -> ShownAnswer:
    """One that others published, a CPU against a GPU."""
    study = next(study for study in load_published_studies() if study.name == PUBLISHED)
    answer = _name_devices(study.answer, "the CPU", "the GPU")
    source = f"{study.mark}. {study.title}; {study.source.cpu}; {study.source.gpu}."
    chart = study_charts.crossing_chart(answer, published=True)
    return ShownAnswer(sentence=answer.sentence, source=source, chart=chart, study=study.name)


@cache_answers(4)
def _find_first_crossing(lines: list[StudyLine]) -> ShownAnswer | None:
    ranked = sorted(lines, key=lambda line: (line.challenger.startswith("cpu"), -len(line.sizes)))
    for line in ranked[:MAX_READ_STUDIES]:
        try:
            study = queries.find_studies([line]).get(line.id)
            located = queries.locate_crossover(study, "steady") if study else None
        except CrossoverError:
            continue
        if located and located.answer.outcome == "crossing":
            names = [Contender.parse(text).title for text in (line.baseline, line.challenger)]
            answer = _name_devices(located.answer, *names)
            trained = f"{value_label('model', line.model)}, {value_label('dataset', line.dataset)}"
            source = f"Measured: {trained}; {line.machine}, {format_date(line.newest)}"
            chart = study_charts.crossing_chart(answer, kinds=located.kinds)
            return ShownAnswer(sentence=answer.sentence, source=source, chart=chart, study=line.id)
    return None


def _name_devices(answer: Crossover, baseline: str, challenger: str) -> Crossover:
    named = replace(answer, baseline=baseline, challenger=challenger)
    return replace(named, sentence=wording.crossover_headline(named))
