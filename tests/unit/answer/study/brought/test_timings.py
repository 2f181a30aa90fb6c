"""Somebody's own timings: what is read of them, and what they say."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.answer import timings_csv
from tests.unit.answer.study.brought.made import BOTH, HEADER, file, refusal


def test_readings_are_grouped_by_size_and_device_and_are_not_pairs():
    read = timings_csv.read_timings(file(*BOTH, "8,cpu,1.5"), "mine.csv")
    assert (read.devices, read.baseline, read.challenger, read.notes) == (("cpu", "gpu"), "cpu", "gpu", ())
    small, large = read.evidence
    assert (small.size, small.baseline_s, small.challenger_s) == (8.0, (1.0, 1.5), (2.0,))
    assert (large.size, large.baseline_s, large.challenger_s) == (16.0, (3.0,), (2.5,))
    assert not any(entry.paired or entry.obstacle for entry in read.evidence)


@given(some.permutations([*BOTH, "8,cpu,1.5", "8,gpu,2.25", "4,cpu,0.5", "4,gpu,1e0"]))
def test_the_order_of_rows_changes_nothing(rows):
    assert (
        timings_csv.read_timings(file(*rows), "x").evidence
        == timings_csv.read_timings(file(*sorted(rows)), "x").evidence
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + file(*BOTH),
        file(*BOTH).replace(b"\n", b"\r\n"),
        file(*BOTH).replace(b",", b";"),
        file(*BOTH).replace(b",", b" , "),
        file(*BOTH, "", ",,", ""),
        b"\n" + file(*BOTH),
        file('"8",cpu,"1.0"', *BOTH[1:], header=' Size,DEVICE,"seconds"'),
        file("1.0,8,cpu", "2.0,8,gpu", "3.0,16,cpu", "2.5,16,gpu", header="seconds,size,device"),
        file(*BOTH).replace(b",", b"\t"),
        b"sep=;\r\n" + file(*BOTH).replace(b",", b";"),
        b'"sep=|"\n' + file(*BOTH).replace(b",", b"|"),
        file(*BOTH).decode().encode("utf-16"),
        b"\xfe\xff" + file(*BOTH).decode().encode("utf-16-be"),
        b"# from the lab\n" + file(BOTH[0], "# 7, not seen", *BOTH[1:]),
        file(*BOTH).replace(b",", b";").replace(b".", b","),
        file("8,1,2", "16,3,2.5", header="size,cpu_s,gpu [seconds]"),
        file("1000,8,cpu", "2e3,8,gpu", "3000,16,cpu", "2500,16,gpu", header="ms,size,device"),
        file("8,cpu,1000000", "8,gpu,2e6", "16,cpu,3e6", "16,gpu,2.5e6", header="size,device,time (µs)"),
        file("8,1000,2", "16,3000,2.5", header="size,cpu (ms),gpu (s)"),
    ],
    ids=[
        "BOM",
        "Windows",
        "semicolons",
        "spaces",
        "blank rows",
        "blank first",
        "quotes and case",
        "other order",
        "tabs",
        "Excel's line",
        "Excel's line quoted",
        "UTF-16",
        "UTF-16 with the large end first",
        "comments",
        "decimal commas",
        "a column a device",
        "milliseconds",
        "microseconds",
        "a unit a column",
    ],
)
def test_how_the_same_table_is_written_does_not_matter(data):
    assert timings_csv.read_timings(data, "x") == timings_csv.read_timings(file(*BOTH), "x")


def test_a_column_a_device_may_be_there_several_times_with_gaps_and_another_name_for_size():
    read = timings_csv.read_timings(file("8,1,2,1.5", "16,3,2.5,", header="Neurons,CPU,gpu,CPU"), "x")
    small, large = read.evidence
    assert (read.baseline, read.challenger) == ("CPU", "gpu")
    assert (small.baseline_s, small.challenger_s, large.baseline_s) == ((1.0, 1.5), (2.0,), (3.0,))
    assert read.notes == ("No unit is named for CPU and gpu, so the times are read as seconds.",)


def test_a_wide_table_of_an_accelerator_without_its_kind_in_the_name_is_not_turned_round():
    data = file("64,80,1", "128,160,2", header="size,Xeon (ms),A100 (ms)")
    with pytest.raises(timings_csv.RolesUnclear) as unclear:
        timings_csv.read_timings(data, "x")
    assert unclear.value.devices == ("A100", "Xeon")
    read = timings_csv.read_timings(data, "x", devices=("Xeon", "A100"))
    assert [entry.baseline_s for entry in read.evidence] == [(0.08,), (0.16,)]


def test_of_more_columns_two_are_chosen_and_the_others_are_not_even_read():
    data = file("8,1,2,none yet", header="size,cpu (s),gpu (s),note")
    assert "out of cpu, gpu, note" in refusal(data)
    read = timings_csv.read_timings(data, "x", devices=("cpu", "gpu"))
    assert (read.evidence[0].challenger_s, read.notes) == ((2.0,), ("The column note was not used.",))


@pytest.mark.parametrize(
    ("row", "size", "seconds"),
    [
        ("1.024;1,5;2", 1024, 1.5),
        ("1.024;1.234,5;2", 1024, 1234.5),
        ("1 024;1,5;2", 1024, 1.5),
        ("1\u202f024;1.5;2", 1024, 1.5),
        ("1'024'000;1.5;2", 1_024_000, 1.5),
        ("1,024;1.5;2", 1024, 1.5),
        ("1,024,000;1;2", 1_024_000, 1),
        ("1.024.000;1;2", 1_024_000, 1),
        ("1.024;3;2", 1.024, 3),
        ("8;1,5e-3;2", 8, 1.5e-3),
        ("8;,5;2", 8, 0.5),
    ],
)
def test_a_comma_is_what_all_numbers_together_say(row, size, seconds):
    (entry,) = timings_csv.read_timings(file(row, header="size;cpu (s);gpu (s)"), "x").evidence
    assert (entry.size, entry.baseline_s) == (size, (seconds,))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("1,024;3;2",), "size in line 2 must be a number above 0, with a decimal point"),
        (
            ("8;1,5;2", "16;1.5;2"),
            "cpu (s) in line 3 must be a number above 0, with a",
        ),
        (("8;1,5;2", "16;1.5;2"), "with a decimal comma if it is not whole, as in line 2"),
        (("8;1,23,4;2",), "cpu in line 2 must be "),
        (("8;12 34;2",), "cpu in line 2 must be "),
        (("8;1.5;2", "16;1;gone"), "gpu in line 3 must be "),
        (("8;1;2", "# 16;1;2", "x;1;2"), "size in line 4 must be "),
    ],
)
def test_what_a_number_does_not_say_for_certain_is_refused_with_its_column_and_line(rows, words):
    assert words in refusal(file(*rows, header="size;cpu (s);gpu (s)"))


def test_a_number_sign_within_a_row_begins_no_comment():
    read = timings_csv.read_timings(file('"a\n# b",8,cpu,1', "x,8,gpu,2", "# y,8,gpu,2", header=f"note,{HEADER}"), "x")
    assert read.evidence[0].challenger_s == (2.0,)


def test_more_readings_than_are_read_are_counted_over_columns(monkeypatch):
    monkeypatch.setattr(timings_csv, "MAX_READINGS", 3)
    assert "more than 3 readings" in refusal(file("8,1,2", "16,1,2", header="size,cpu,gpu"))
    assert "at most 100 devices" in refusal(file("8,1", header="size," + ",".join(f"cpu{n}" for n in range(101))))


def test_the_answer_of_a_table_is_that_of_its_evidence():
    rows = [f"{size},{size * factor / 100},1" for size in (25, 50, 200, 400) for factor in (0.99, 1.0, 1.01)]
    answer = timings_csv.timings_crossover(timings_csv.read_timings(file(*rows, header="size,cpu (s),gpu (s)"), "x"))
    assert (answer.outcome, answer.axis, answer.basis, answer.busy) == ("crossing", "size", "as_given", "")


def test_further_columns_are_named_as_not_used():
    rows = [f"{row},me,{number}" for number, row in enumerate(BOTH)]
    read = timings_csv.read_timings(file(*rows, header=f"{HEADER},who,number"), "x")
    assert read.evidence == timings_csv.read_timings(file(*BOTH), "x").evidence
    assert read.notes == ("The columns who, number were not used.",)


def test_a_size_that_one_device_lacks_is_kept_with_what_is_missing():
    read = timings_csv.read_timings(file(*BOTH, "32,gpu,3", "4,cpu,1"), "x")
    assert [entry.obstacle for entry in read.evidence] == ["only timed on cpu", "", "", "only timed on gpu"]
    assert read.evidence[0].baseline_s == (1.0,)
    assert read.evidence[3].challenger_s == (3.0,)


@pytest.mark.parametrize("names", [("tpu", "CPU (8 threads)"), ("A100", "torch_cpu"), ("cuda:0", "Intel CPU")])
def test_the_baseline_is_the_one_with_cpu_in_its_name(names):
    read = timings_csv.read_timings(file(f"8,{names[0]},1", f"8,{names[1]},2"), "x")
    assert (read.challenger, read.baseline) == names


@pytest.mark.parametrize("names", [("A100", "Xeon"), ("cpu@1", "cpu@8")], ids=["none is", "both are"])
def test_which_is_set_against_which_is_asked_where_the_names_do_not_say_and_never_guessed(names):
    data = file(f"8,{names[1]},80", f"8,{names[0]},1")
    with pytest.raises(timings_csv.RolesUnclear) as unclear:
        timings_csv.read_timings(data, "x")
    assert unclear.value.devices == names
    assert "a baseline and a challenger out of" in refusal(data)
    assert "because neither name contains cpu" in refusal(data)
    for pair in (names, names[::-1]):
        read = timings_csv.read_timings(data, "x", devices=pair)
        assert (read.baseline, read.challenger) == pair


def test_of_several_devices_two_are_chosen_and_the_others_are_named():
    data = file(*BOTH, "8,tpu,1")
    assert "devices must be " in refusal(data)
    assert "out of cpu, gpu, tpu" in refusal(data)
    read = timings_csv.read_timings(data, "x", devices=("tpu", "gpu"))
    assert (read.baseline, read.challenger, read.notes) == ("tpu", "gpu", ("The device cpu was not used.",))
    assert [entry.obstacle for entry in read.evidence] == ["", "only timed on gpu"]


def test_a_cpu_is_the_baseline_whichever_is_named_first():
    read = timings_csv.read_timings(file(*BOTH), "x", devices=("gpu", "cpu"))
    assert (read.baseline, read.challenger) == ("cpu", "gpu")


@pytest.mark.slow
def test_of_200_000_rows_none_is_lost():
    draw = random.Random(1)
    rows = [
        f"{2 ** draw.randrange(3, 13)},{draw.choice(('cpu', 'gpu'))},{draw.uniform(1, 2):.6f}" for _ in range(200_000)
    ]
    evidence = timings_csv.read_timings(file(*rows), "x").evidence
    assert sum(len(entry.baseline_s) + len(entry.challenger_s) for entry in evidence) == 200_000
