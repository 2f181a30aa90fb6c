"""What is said of the rows of a fit, which are the training samples of other trainings."""

from core.answer import study, wording
from core.answer.charts import look
from core.answer.export import report
from core.question import describe
from core.question.experiment import Point
from core.question.sweep import Axis, Sweep, vary
from tests.rows import run

POINT = Point(dataset="signal", samples=1_000, model="xgboost", rounds=10)
TIMES = {1_000: (1e-2, 2e-2), 4_000: (2e-2, 3e-2), 16_000: (5e-2, 4e-2), 64_000: (2e-1, 1e-1)}


def of(point, device="cpu"):
    rows = []
    for number, (samples, (one, two)) in enumerate(TIMES.items()):
        sized = vary(point, {"samples": samples})
        rows += run({"cpu@1": one, "cpu@2": two}, point=sized, run_id=f"{number:012x}", device=device)
    (found,) = study.studies(rows, axis="samples")
    return found


def test_an_axis_of_samples_is_one_of_rows_where_trees_are_fitted():
    fits = of(POINT)
    answer = fits.crossover()
    assert (fits.axis, answer.axis) == ("samples", "rows")
    assert "rows" in answer.sentence
    text = report.crossover_text(answer) + report.study_line(fits)
    said = " ".join(look.measurement_lines([pair[0] for pair in fits.runs], "samples"))
    assert "rows 1,000 to 64,000" in said
    assert "training samples" not in answer.sentence + text + said
    assert wording.is_whole_axis("rows")


def test_samples_of_networks_stay_samples():
    answer = of(Point(dataset="signal", samples=1_000)).crossover()
    assert answer.axis == "samples"
    assert "training samples" in answer.sentence


def test_a_question_of_fits_is_about_rows():
    assert "1,000 rows" in describe.describe_question(POINT)
    sweep = Sweep(point=POINT, axes=(Axis(name="samples", values=(1_000, 4_000)),))
    assert describe.describe_question(sweep).startswith("Rows 1,000 to 4,000")
