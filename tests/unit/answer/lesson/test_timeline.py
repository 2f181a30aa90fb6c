"""Timelines: when each clock is read, and a race at the speed of the recorded blocks."""

import pytest

from core.answer.lessons import timeline
from core.errors import NotComparable
from tests import exhibited, rows


def test_a_simulated_clock_says_so_and_the_early_clock_stops_first():
    trace = timeline.simulate_clock()
    start, early, late = (mark.at_s for mark in trace.marks)
    assert start == 0 < early < late == trace.end_s
    assert trace.origin.startswith("Simulated, not measured")


def test_a_recorded_clock_is_traced_with_its_own_readings():
    shown = exhibited.clock({"ours": 1.0, "no_drain": 0.2})
    trace = timeline.trace_clock(shown)
    assert [mark.at_s for mark in trace.marks] == pytest.approx([0.0, 2.002e-4, 1.001e-3])
    assert "Simulated" not in trace.origin
    assert "200 µs" in trace.sentence


@pytest.mark.parametrize("factors", [{"ours": 1.0}, {"ours": 1.0, "no_drain": 1.0}])
def test_a_device_whose_clocks_agree_is_not_traced(factors):
    assert timeline.trace_clock(exhibited.clock(factors)) is None


def test_a_cpu_is_not_traced():
    assert timeline.trace_clock(exhibited.exhibit()) is None


def test_both_devices_of_a_race_do_the_same_work_in_their_own_time():
    cpu, gpu = rows.run({"cpu": 4e-3, "cuda:0": 1e-3})
    race = timeline.race_devices([cpu, gpu])
    ends = [row.spans[-1].end_s for row in race.rows]
    assert ends[0] / ends[1] == pytest.approx(
        sum(cpu.step_s) / len(cpu.step_s) / (sum(gpu.step_s) / len(gpu.step_s)), rel=1e-9
    )
    assert [row.spans[-1].end for row in race.rows] == pytest.approx([1.0, 1.0])
    assert race.speed == 1
    assert max(ends) == pytest.approx(timeline.RACE_S, rel=0.05)


def test_a_race_needs_two_devices():
    with pytest.raises(NotComparable, match="two devices"):
        timeline.race_devices(rows.run({"cpu": 1e-3}))


def test_the_report_says_when_each_clock_is_read():
    section = timeline.trace_section(timeline.simulate_clock())
    assert len(section.tables[0].rows) == 3
    assert section.notes[0].startswith("Simulated")


def test_a_race_without_a_verdict_says_that_its_order_is_no_result():
    pair = rows.run({"cpu": 1e-3, "cuda:0": 1e-3})
    assert timeline.NO_WINNER in timeline.race_devices(pair, has_winner=False).origin
    assert timeline.NO_WINNER not in timeline.race_devices(pair).origin


def test_the_benchmark_that_does_not_wait_shows_one_time_for_a_hundred_times_the_work():
    section = timeline.untimed_section()
    (table,) = section.tables
    assert [row[0] for row in table.rows] == ["1,000", "5,000", "10,000", "50,000", "100,000"]
    (_, cpu, gpu), (*_, gpu_most) = table.rows[0], table.rows[-1]
    assert (cpu, gpu) == ("16.1 ms", "3.38 ms")
    assert f"{gpu} and {gpu_most}" in section.sentences[1]
    assert "MIT licence" in section.notes[0]
