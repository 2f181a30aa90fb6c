"""Every surface says the same of the same rows: headline, table, chart, cause, report, class and file."""

import dataclasses
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer import causes, speedup, study, training_cost, wording
from core.answer.charts import study_charts
from core.answer.export import report
from core.answer.judgement import Crossover
from core.answer.run import Run
from core.classroom.question import ClassQuestion
from core.classroom.results import compute_result
from core.classroom.students import Student
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep
from tests import rows

SIZES = (8, 24, 100, 512, 1500)
CLOSE_RATIOS = st.one_of(st.floats(0.9, 1.12), st.floats(0.1, 12.0), st.sampled_from((0.5, 1.0, 1.05, 2.0)))
OUTCOMES = ("completed", "timed", "stopped", "budget_spent", "interrupted")
PAIRS_OF_DEVICES = (("cpu@1", "cpu@2"), ("cpu@2", "cpu@1"), ("cpu", "cuda:0"), ("cpu@1", "cpu@1+fused"))
STUDENT = Student(id="0" * 16, nickname="Ada", joined_at="", waiting=False, results="", fault="")
FASTER = re.compile(r" (?:is|are) [\d.,]+× faster than | (?:was|were) [\d.,]+× as fast as ")


class Drawn(list):
    """Rows that were drawn, told in a few words where an example fails."""

    def __repr__(self):
        return f"{len(self)} rows: {[(r.contender, r.outcome, len(r.block_pair), r.hidden_size) for r in self]}"[:500]


@st.composite
def runs(draw: st.DrawFn, *, run_id: str = rows.RUN_ID, point: Point = rows.EXPERIMENT.point, names=None, pairs=None):
    """Two rows of a run: any lead, noise, number of pairs and ending; some of its blocks beside other programs."""
    names = names or draw(st.sampled_from(PAIRS_OF_DEVICES))
    pairs = pairs or draw(st.integers(1, 25))
    times = {names[0]: 1e-3, names[1]: 1e-3 / draw(CLOSE_RATIOS)}
    noise, outcome = draw(st.sampled_from((0.0, 0.01, 0.1, 0.4))), draw(st.sampled_from(OUTCOMES))
    made = rows.run(times, point=point, run_id=run_id, pairs=pairs, jitter=noise, outcome=outcome)
    return Drawn(_disturb(draw, row) for row in made)


def _disturb(draw: st.DrawFn, row):
    """A row as it is, or as other programs left it: blocks displaced, stolen from or spread out."""
    kind, share = draw(st.sampled_from(("quiet", "displaced", "stolen", "spread", "measured"))), draw(st.floats(0, 1))
    blocks = len(row.block_pair)
    hit = [place < share * blocks for place in range(blocks)]
    if kind == "displaced":
        return dataclasses.replace(row, block_switches=tuple(10_000 if one else 0 for one in hit))
    if kind == "stolen":
        return dataclasses.replace(row, block_steal=tuple(0.3 if one else 0.0 for one in hit))
    if kind == "measured":
        return rows.beside_programs(row, share, draw(st.floats(0, 1)))
    if kind == "spread":
        spans = zip(row.block_begin_ns, row.block_end_ns, hit, strict=True)
        ends = tuple(begin + (end - begin) * (4 if one else 1) for begin, end, one in spans)
        return dataclasses.replace(row, block_end_ns=ends)
    return row


@st.composite
def sweeps(draw: st.DrawFn):
    """The rows of a sweep of one size, few pairs each as a rule."""
    names = draw(st.sampled_from((("cpu@1", "cpu@2"), ("cpu", "cuda:0"))))
    pairs, count = draw(st.sampled_from((1, 2, 3, 6, 12))), draw(st.integers(1, len(SIZES)))
    found = []
    for number, size in enumerate(SIZES[:count]):
        point = Point(dataset="digits", model="mlp", hidden_size=size, depth=2, batch_size=64, epochs=100)
        found += draw(runs(run_id=f"{number:012x}", point=point, names=names, pairs=pairs))
    return Drawn(found)


@given(made=runs())
@settings(max_examples=150, deadline=None)
def test_no_two_surfaces_of_a_run_disagree(made):
    base, other = made
    pair, found = Run(made).pairs[0], speedup.speedup(base, other)
    named = bool(FASTER.search(found.claim))
    assert named is bool(found.winner) is found.has_winner
    document = report.run_document(made, from_store=True)["comparisons"][0]
    assert (document["winner"] or "", document["claim"], document["verdict"]) == (
        found.winner,
        found.claim,
        found.verdict,
    )
    assert found.sentence in report.run_text(made)
    assert bool(re.search("(is|are) faster", found.short_claim)) is found.has_winner
    assert found.short_claim.endswith(", under load") is found.is_conditional
    if not found.has_winner or found.is_conditional:
        assert pair.break_even.epochs is None
        assert "unknown" in pair.break_even.sentence
    _agree_on_threads(pair.cause, found, base, other)
    assert _class_winner([base, other], Experiment(point=rows.EXPERIMENT.point, contenders=_contenders(made))) in (
        _expected_class_winners(found)
    )


@given(made=runs(), outcome=st.sampled_from(OUTCOMES))
@settings(max_examples=60, deadline=None)
def test_a_run_that_was_stopped_is_judged_as_one_that_was_not(made, outcome):
    ended = [dataclasses.replace(row, outcome=outcome) for row in made]
    one, two = speedup.speedup(*made), speedup.speedup(*ended)
    assert (one.verdict, one.value, one.low, one.claim) == (two.verdict, two.value, two.low, two.claim)


@given(made=sweeps())
@settings(max_examples=120, deadline=None)
def test_no_two_surfaces_of_a_sweep_disagree(made):
    (held,) = study.studies(made, axis="hidden_size", least=1)
    answer = held.crossover()
    winners = _size_winners(answer)
    _agree_with_headline(answer, winners)
    drawn = {row["size"]: row["verdict"] for row in _chart_rows(answer)}
    for size in answer.sizes:
        said = wording.size_verdict_text(size, answer)
        if size.size in winners:
            assert said.startswith(
                ("1 CPU thread is faster", "2 CPU threads are faster", "The CPU", "CPU", "GPU", "The GPU")
            )
            assert drawn[size.size].endswith(" faster")
        else:
            assert said.startswith(("No winner: ", "Not known"))
            assert drawn.get(size.size, "") in ("", study_charts.CLOSE, study_charts.UNDECIDED)
    text = report.crossover_text(answer)
    assert text.count(" faster") - answer.sentence.count(" faster") == sum(
        wording.size_verdict_text(size, answer).count(" faster") for size in answer.sizes
    )
    if known := held.cause(answer):
        size = next(size for size in answer.sizes if size.size == known[0])
        pair = next(pair for pair in held.runs if pair[0].hidden_size == known[0])
        _agree_on_threads(known[1], study.size_verdict(pair, size, answer), *pair)
    axes = (Axis(name="hidden_size", values=SIZES),)
    point = dataclasses.replace(rows.EXPERIMENT.point, hidden_size=SIZES[0])
    told = _class_winner(made, Sweep(point=point, axes=axes, contenders=_contenders(made)))
    last = max((size.size for size in answer.sizes if size.speedup is not None), default=None)
    if len(held.runs) == 1:  # of one size a class counts the run itself
        assert told in _expected_class_winners(speedup.speedup(*held.runs[0]))
    else:
        assert told in ((winners[last],) if last in winners and not answer.condition else (None, "same"))


def _size_winners(answer: Crossover) -> dict[float, str]:
    return {
        size.size: "challenger" if (size.speedup or 1) > 1 else "baseline" for size in answer.sizes if size.has_winner
    }


def _agree_with_headline(answer: Crossover, winners: dict[float, str]) -> None:
    """Assert that sizes have winners only where the headline has one, and the same."""
    match answer.outcome:
        case "gpu_always" | "cpu_always":
            assert set(winners.values()) == {"challenger" if answer.outcome == "gpu_always" else "baseline"}
        case "crossing":
            (only,) = answer.crossings
            above, below = ("challenger", "baseline") if only.challenger_above else ("baseline", "challenger")
            assert all(winner == (above if size > only.estimate else below) for size, winner in winners.items())
        case "undecided":
            clear = {size: one for size in winners for one in answer.clear if one.begin <= size <= one.end}
            assert clear.keys() == winners.keys()
            assert all((winners[size] == "challenger") is one.challenger_faster for size, one in clear.items())
        case "not_measurable":
            assert not winners


def _agree_on_threads(cause, found, base, other):
    """Assert that the cause between two numbers of threads names no winner that the verdict does not."""
    if not (speedup.is_host(base) and speedup.is_host(other)) or base.threads == other.threads:
        return
    if re.search(r"A step is [\d.]+× as fast", cause):
        assert found.has_winner
        assert not found.is_conditional
        many = max(base, other, key=lambda row: row.threads)
        assert ("large enough" in cause) is (found.winner == many.contender)
    elif "These blocks do not show" in cause:
        assert not found.has_winner or found.is_conditional
    assert causes.is_worth_sharing(base, other, found) in ((None, False, True) if found.has_winner else (None, False))


def _contenders(made) -> tuple[Contender, ...]:
    return tuple(Contender.parse(name) for name in dict.fromkeys(row.contender for row in made))


def _class_winner(made, question) -> str | None:
    result = compute_result(ClassQuestion(title="", question=question, words=""), STUDENT, made)
    return result.winner if result else None


def _expected_class_winners(found) -> tuple[str | None, ...]:
    if found.is_conditional:
        return (None,)
    if not found.has_winner:
        return (None, "same")
    return ("challenger" if found.winner == found.challenger else "baseline", None)


def _chart_rows(answer: Crossover):
    spec = study_charts.speedup_chart(answer)
    lists = spec.get("datasets", {}).values() or [spec["data"]["values"]]
    return [row for values in lists for row in values if row.get("layer") == "size"]


def test_a_break_even_needs_a_winner():
    close = rows.run({"cpu": 1e-3, "cuda:0": 0.95e-3}, jitter=0.001)
    assert training_cost.find_break_even(*close).epochs is None
