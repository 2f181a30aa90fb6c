"""One question on many machines: rows of each, the study of each, and which studies ask the same."""

import dataclasses

from core.answer import recorded_machines, study
from core.answer.charts import lesson_charts as charts
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

ASKED = sweep(sizes=(32, 64, 128, 256))
FIRST, SECOND = "a" * 12, "b" * 12


def measured(machine_id, *, started_at="2026-11-21T09:30:00+00:00", points=ASKED.points, asked=ASKED, mark=0):
    """Rows of one machine."""
    found = []
    for number, point in enumerate(points):
        run_id = f"{machine_id[:3]}{mark}{number:08x}"
        changes = {"machine_id": machine_id, "started_at": started_at}
        found += scripted_worker.timed(asked.experiment(point), run_id, **changes)
    return found


def test_every_machine_has_a_study_and_a_crossover_of_its_own():
    found = study.group_by_machine(study.studies([*measured(FIRST), *measured(SECOND)], axis="hidden_size"), ASKED)
    assert list(found) == [FIRST, SECOND]
    answers = {name: entry.crossover("steady") for name, entry in found.items()}
    assert all(answer.outcome == "crossing" for answer in answers.values())


def test_only_studies_of_other_machines_that_ask_the_same_stand_beside_one():
    other = dataclasses.replace(ASKED, point=dataclasses.replace(ASKED.point, epochs=7))
    first, second, longer = (
        study.studies(rows, axis="hidden_size")[0]
        for rows in (measured(FIRST), measured(SECOND), measured(SECOND, asked=other, mark=1))
    )
    assert study.find_same_question(first, [first, second, longer]) == [second]


def test_the_chart_has_a_line_for_each_machine_and_says_where_there_is_no_crossing():
    found = study.group_by_machine(study.studies([*measured(FIRST), *measured(SECOND)], axis="hidden_size"), ASKED)
    crossing, always = (entry.crossover("steady") for entry in found.values())
    always = dataclasses.replace(always, outcome="gpu_always", crossings=(), estimate=None, low=None, high=None)
    spec = charts.machine_crossovers_chart(
        {"lab-1": crossing, "<b>lab-2</b>": always}, dict.fromkeys(("lab-1", "<b>lab-2</b>"), "cpu")
    )
    rows = spec["data"]["values"]
    assert [(row["machine"], row["found"]) for row in rows] == [
        ("lab-1", "crossover"),
        ("<b>lab-2</b>", "faster at every size"),
    ]
    assert rows[0]["low"] <= rows[0]["at"] <= rows[0]["high"]
    assert rows[1]["at"] == 32
    assert spec["height"] == {"step": charts.MACHINE_ROW_HEIGHT}, "each has its room, with a legend and without"
    assert [layer["encoding"]["y"]["axis"]["labelOverlap"] for layer in spec["layer"]] == [False, False]


def test_a_machine_that_has_measured_up_to_a_size_says_nothing_of_larger_ones():
    whole, part = (
        study.studies(rows, axis="hidden_size")[0].crossover("steady") for rows in (measured(FIRST), measured(SECOND))
    )
    part = dataclasses.replace(part, outcome="cpu_always", crossings=(), sizes=part.sizes[:2])
    spec = charts.machine_crossovers_chart({"lab-1": whole, "lab-2": part}, dict.fromkeys(("lab-1", "lab-2"), "cpu"))
    assert [row["at"] for row in spec["data"]["values"] if row["machine"] == "lab-2"] == [part.sizes[-1].size]


def test_machines_that_are_alike_are_told_apart_by_a_number():
    assert recorded_machines.name_machines([3], "AMD EPYC", 2) == "machine 3 (AMD EPYC, 2 CPU threads)"
    assert recorded_machines.name_machines([1, 2], "AMD EPYC", 1) == "machines 1, 2 (AMD EPYC, 1 CPU thread)"
    assert recorded_machines.name_machines([1], "AMD EPYC", 0) == "machine 1 (AMD EPYC)", (
        "an earlier version does not tell its threads"
    )
