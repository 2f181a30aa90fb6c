"""What is said of fits of gradient boosting."""

import dataclasses
import json

from core.answer import causes, training_cost
from core.answer.charts import run_charts
from core.answer.export import report
from core.question.experiment import Contender, Experiment, Point
from tests.rows import run, trial

POINT = Point(dataset="signal", samples=20_000, model="xgboost", rounds=50)


def of(**changes):
    rows = run({"cpu@1": 0.4, "cpu@2": 0.2}, point=POINT, device="cpu")
    return [dataclasses.replace(row, parameters=0, flops_per_step=0, epochs=1, **changes) for row in rows]


def test_a_fit_is_told_by_rows_rounds_and_leaves_and_what_is_not_known_is_said():
    (first, *_) = of()
    said = causes.fit_line(first)
    assert "20,000 rows, 50 rounds of at most 31 leaves" in said
    assert "whose parameters and operations are unknown" in said
    assert not causes.is_fit(trial())
    text = report.run_text(of())
    assert "a fit" in text
    assert "0 parameters" not in text


def test_threads_share_a_fit_and_its_start_up_is_paid_back_after_fits():
    one, two = of(startup_device_s=0.0, startup_build_s=2.0, startup_first_step_s=0.3, loss=(0.3,), loss_step=(1,))
    assert "A fit is 1.99× as fast with 2 threads as with 1 thread" in causes.difference_cause(one, two)
    later = dataclasses.replace(two, startup_build_s=3.0)
    said = training_cost.find_break_even(one, later).sentence
    assert "fits" in said
    assert "epoch" not in said
    assert causes.fit_losses_sentence([one, two]).endswith("is 0.300 on 1 CPU thread and 0.300 on 2 CPU threads.")


def test_what_does_not_depend_on_rows_is_named_from_fits_of_twice_as_many():
    one, two = of(turns_step_s=(0.1,) * 3, doubled_step_s=(0.12, 0.13, 0.11))
    assert causes.difference_cause(one, two).endswith(
        "On 2 CPU threads 80 % of a fit does not depend on its rows, as fits with every row twice show: they are too "
        "few."
    )
    large = of(turns_step_s=(0.1,) * 3, doubled_step_s=(0.19, 0.2, 0.18))
    assert "depend" not in causes.difference_cause(*large)
    unsure = of(turns_step_s=(0.1,) * 3, doubled_step_s=(0.12, 0.3, 0.11))
    assert "depend" not in causes.difference_cause(*unsure)


def test_why_a_gpu_differs_is_not_guessed():
    asked = Experiment(point=POINT, contenders=(Contender(), Contender(device="cuda:0")))
    rows = [trial(contender=name, experiment=asked) for name in ("cpu", "cuda:0")]
    assert causes.difference_cause(*rows).startswith("The cause is unknown: XGBoost does not report")
    known = dataclasses.replace(rows[1], turns_step_s=(1.0,) * 3, doubled_step_s=(1.6,) * 3)
    said = "On the GPU 40 % of a fit does not depend on its rows, as fits with every row twice show."
    assert causes.difference_cause(rows[0], known) == said


def test_charts_of_fits_tell_their_times():
    shown = json.dumps([run_charts.step_bars_chart(of()), run_charts.blocks_chart(of())])
    assert "time per fit" in shown
    assert "time per step" not in shown
