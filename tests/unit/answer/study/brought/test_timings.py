"""Somebody's own timings: what is read, and in which words the rest is refused."""

import contextlib
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.answer.study.brought import tables, timings
from core.errors import CrossoverError, ForeignFile, InvalidValue

HEADER = "size,device,seconds"
BOTH = ("8,cpu,1.0", "8,gpu,2.0", "16,cpu,3.0", "16,gpu,2.5")


def file(*rows: str, header: str = HEADER) -> bytes:
    return ("\n".join([header, *rows]) + "\n").encode()


def refusal(data: bytes, **options) -> str:
    with pytest.raises(CrossoverError) as raised:
        timings.read(data, "mine.csv", **options)
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_readings_are_grouped_by_size_and_device_and_are_not_pairs():
    read = timings.read(file(*BOTH, "8,cpu,1.5"), "mine.csv")
    assert (read.devices, read.baseline, read.challenger, read.notes) == (("cpu", "gpu"), "cpu", "gpu", ())
    small, large = read.evidence
    assert (small.size, small.baseline_s, small.challenger_s) == (8.0, (1.0, 1.5), (2.0,))
    assert (large.size, large.baseline_s, large.challenger_s) == (16.0, (3.0,), (2.5,))
    assert not any(entry.paired or entry.obstacle for entry in read.evidence)


@given(some.permutations([*BOTH, "8,cpu,1.5", "8,gpu,2.25", "4,cpu,0.5", "4,gpu,1e0"]))
def test_the_order_of_rows_changes_nothing(rows):
    assert timings.read(file(*rows), "x").evidence == timings.read(file(*sorted(rows)), "x").evidence


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
    assert timings.read(data, "x") == timings.read(file(*BOTH), "x")


def test_a_column_a_device_may_be_there_several_times_with_gaps_and_another_name_for_size():
    read = timings.read(file("8,1,2,1.5", "16,3,2.5,", header="Neurons,CPU,gpu,CPU"), "x")
    small, large = read.evidence
    assert (read.baseline, read.challenger) == ("CPU", "gpu")
    assert (small.baseline_s, small.challenger_s, large.baseline_s) == ((1.0, 1.5), (2.0,), (3.0,))
    assert read.notes == ("No unit is named for CPU and gpu, so the times are taken as seconds.",)


def test_a_wide_table_of_an_accelerator_without_its_kind_in_the_name_is_not_turned_round():
    data = file("64,80,1", "128,160,2", header="size,Xeon (ms),A100 (ms)")
    with pytest.raises(timings.RolesUnclear) as unclear:
        timings.read(data, "x")
    assert unclear.value.devices == ("A100", "Xeon")
    read = timings.read(data, "x", devices=("Xeon", "A100"))
    assert [entry.baseline_s for entry in read.evidence] == [(0.08,), (0.16,)]


def test_of_more_columns_two_are_chosen_and_the_others_are_not_even_read():
    data = file("8,1,2,none yet", header="size,cpu (s),gpu (s),note")
    assert "out of cpu, gpu, note" in refusal(data)
    read = timings.read(data, "x", devices=("cpu", "gpu"))
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
    (entry,) = timings.read(file(row, header="size;cpu (s);gpu (s)"), "x").evidence
    assert (entry.size, entry.baseline_s) == (size, (seconds,))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("1,024;3;2",), "size in line 2: '1,024' is not possible, it must be a number above 0, with a point"),
        (
            ("8;1,5;2", "16;1.5;2"),
            "cpu (s) in line 3: '1.5' is not possible, it must be a number above 0, with a",
        ),
        (("8;1,5;2", "16;1.5;2"), "with a comma where it is not whole, as in line 2"),
        (("8;1,23,4;2",), "cpu in line 2: '1,23,4'"),
        (("8;12 34;2",), "cpu in line 2: '12 34'"),
        (("8;1.5;2", "16;1;gone"), "gpu in line 3: 'gone'"),
        (("8;1;2", "# 16;1;2", "x;1;2"), "size in line 4: 'x'"),
    ],
)
def test_what_a_number_does_not_say_for_certain_is_refused_with_its_column_and_line(rows, words):
    assert words in refusal(file(*rows, header="size;cpu (s);gpu (s)"))


def test_a_number_sign_within_a_row_begins_no_comment():
    read = timings.read(file('"a\n# b",8,cpu,1', "x,8,gpu,2", "# y,8,gpu,2", header=f"note,{HEADER}"), "x")
    assert read.evidence[0].challenger_s == (2.0,)


def test_more_readings_than_are_read_are_counted_over_columns(monkeypatch):
    monkeypatch.setattr(timings, "MAX_ROWS", 3)
    assert "more than 3 readings" in refusal(file("8,1,2", "16,1,2", header="size,cpu,gpu"))
    assert "at most 100 devices" in refusal(file("8,1", header="size," + ",".join(f"cpu{n}" for n in range(101))))


def test_the_answer_of_a_table_is_that_of_its_evidence():
    rows = [f"{size},{size * factor / 100},1" for size in (25, 50, 200, 400) for factor in (0.99, 1.0, 1.01)]
    answer = timings.answer(timings.read(file(*rows, header="size,cpu (s),gpu (s)"), "x"))
    assert (answer.outcome, answer.axis, answer.basis, answer.busy) == ("crossing", "size", "as_given", "")


def test_further_columns_are_named_as_not_used():
    rows = [f"{row},me,{number}" for number, row in enumerate(BOTH)]
    read = timings.read(file(*rows, header=f"{HEADER},who,number"), "x")
    assert read.evidence == timings.read(file(*BOTH), "x").evidence
    assert read.notes == ("The columns who, number were not used.",)


def test_a_size_that_one_device_lacks_is_kept_with_what_is_missing():
    read = timings.read(file(*BOTH, "32,gpu,3", "4,cpu,1"), "x")
    assert [entry.obstacle for entry in read.evidence] == ["only timed on cpu", "", "", "only timed on gpu"]
    assert read.evidence[0].baseline_s == (1.0,)
    assert read.evidence[3].challenger_s == (3.0,)


@pytest.mark.parametrize("names", [("tpu", "CPU (8 threads)"), ("A100", "torch_cpu"), ("cuda:0", "Intel CPU")])
def test_the_baseline_is_the_one_with_cpu_in_its_name(names):
    read = timings.read(file(f"8,{names[0]},1", f"8,{names[1]},2"), "x")
    assert (read.challenger, read.baseline) == names


@pytest.mark.parametrize("names", [("A100", "Xeon"), ("cpu@1", "cpu@8")], ids=["none is", "both are"])
def test_which_is_set_against_which_is_asked_where_the_names_do_not_say_and_never_guessed(names):
    data = file(f"8,{names[1]},80", f"8,{names[0]},1")
    with pytest.raises(timings.RolesUnclear) as unclear:
        timings.read(data, "x")
    assert unclear.value.devices == names
    assert "a baseline and a challenger out of" in refusal(data)
    assert "since not one of the two names has cpu in it" in refusal(data)
    for pair in (names, names[::-1]):
        read = timings.read(data, "x", devices=pair)
        assert (read.baseline, read.challenger) == pair


def test_of_several_devices_two_are_chosen_and_the_others_are_named():
    data = file(*BOTH, "8,tpu,1")
    assert "Devices: 'not given'" in refusal(data)
    assert "out of cpu, gpu, tpu" in refusal(data)
    read = timings.read(data, "x", devices=("tpu", "gpu"))
    assert (read.baseline, read.challenger, read.notes) == ("tpu", "gpu", ("The device cpu was not used.",))
    assert [entry.obstacle for entry in read.evidence] == ["", "only timed on gpu"]


def test_a_cpu_is_the_baseline_whichever_is_named_first():
    read = timings.read(file(*BOTH), "x", devices=("gpu", "cpu"))
    assert (read.baseline, read.challenger) == ("cpu", "gpu")


@pytest.mark.parametrize(
    ("devices", "words"), [(("cpu", "xpu"), "'xpu' is not possible"), (("cpu", "cpu"), "two different devices")]
)
def test_devices_that_cannot_be_chosen_are_refused(devices, words):
    assert words in refusal(file(*BOTH), devices=devices)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("8,cpu,-1", "seconds in line 3: '-1' is not possible, it must be a number above 0."),
        ("8,cpu,0", "seconds in line 3: '0'"),
        ("8,cpu,fast", "seconds in line 3: 'fast'"),
        ("8,cpu,nan", "seconds in line 3: 'nan'"),
        ("8,cpu,inf", "seconds in line 3: 'inf'"),
        ("8,cpu,1e999", "seconds in line 3: '1e999'"),
        ("8,cpu,", "seconds in line 3: ''"),
        ("8,cpu,1_0", "seconds in line 3: '1_0'"),
        ('8,cpu,"0,5"', "with a point where it is not whole, as in line 2"),
        ('8,cpu,"1,5,0"', "with a point where it is not whole"),
        ("big,cpu,1", "size in line 3: 'big'"),
        ("-8,cpu,1", "size in line 3: '-8'"),
        ("0,cpu,1", "size in line 3: '0'"),
        ("nan,cpu,1", "size in line 3: 'nan'"),
        ("8,,1", "device in line 3: ''"),
        (f"8,{'c' * 101},1", "a name of at most 100 printable characters"),
        ("8,c\x00pu,1", "printable characters"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_line(row, words):
    with pytest.raises(InvalidValue):
        timings.read(file(BOTH[0], row, *BOTH[1:]), "x")
    assert words in refusal(file(BOTH[0], row, *BOTH[1:]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "mine.csv is empty"),
        (b"\n  \n", "mine.csv is empty"),
        (file(), "mine.csv has no readings"),
        (file("8,cpu", header="size,device"), "has no column seconds: its first row is 'size, device'"),
        (file("8,cpu,1", header="neurons,where,time"), "no column size and no column device: its first row"),
        (file("8,0.1", header="8,0.2"), "has no row of names that says what its columns are"),
        (file("8,0.1", header="size,cpu"), "has no row of names"),
        (file("8,1,2", header="size,cpu,0.5"), "has no row of names"),
        (file("8,cpu,1,2", header=f"{HEADER},seconds"), "has the column seconds twice"),
        (file("8,cpu,1", "8,gpu,0,5"), "4 values in line 3 and 3 columns in its first row"),
        (file("8,cpu"), "2 values in line 2"),
        (file("8,cpu,1", '16,"gpu,2', "32,cpu,3"), "the row that begins in line 3"),
        (file("8,cpu,1", '16,"gpu"s,2'), "the row that begins in line 3"),
        (b'size\tdevice\tseconds\n8\tcpu\t"1"x\n', "the row that begins in line 2: ' ' expected after"),
        (b'sep="\n' + file("8,cpu,1"), "its first row is 'sep=\"'"),
        (file("8,cpu,1").replace(b"cpu", b"cp\xfc"), "is not UTF-8 text in line 2"),
        (file("8,cpu,1").decode().encode("utf-16") + b"\x00", "is not UTF-16 text in line 3"),
    ],
)
def test_what_is_no_such_table_is_refused_with_the_place(data, words):
    with pytest.raises(ForeignFile):
        timings.read(data, "mine.csv")
    assert words in refusal(data)


def test_one_device_alone_has_nothing_to_be_compared_with():
    assert "Devices: 'cpu'" in refusal(file("8,cpu,1", "16,cpu,2"))


@pytest.mark.parametrize(
    ("bound", "rows", "words"),
    [
        ("MAX_ROWS", BOTH, "more than 3 readings"),
        ("MAX_SIZES", [f"{size},cpu,1" for size in range(1, 6)], "at most 3 sizes"),
        ("MAX_DEVICES", [f"8,cpu{number},1" for number in range(5)], "at most 3 devices"),
        ("MAX_BYTES", BOTH, "at most 3 are read"),
        ("MAX_LINES", BOTH, "at most 3 are read"),
    ],
)
def test_a_file_beyond_the_bounds_is_refused(monkeypatch, bound, rows, words):
    monkeypatch.setattr(tables if hasattr(tables, bound) else timings, bound, 3)
    assert words in refusal(file(*rows))


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_counted_before_anything_is_made_of_them(monkeypatch, end):
    monkeypatch.setattr(tables.csv, "reader", lambda *_, **__: pytest.fail("parsed"))
    data = ("size,device,seconds" + end * (tables.MAX_LINES + 1)).encode()
    assert f"{tables.MAX_LINES + 1:,} lines; at most" in refusal(data)


@pytest.mark.parametrize(
    "rest",
    ["," * 2_000_000, ",x" * 2_000_000, '"\n",' * 200_000, '"' + "\n" * 200_000 + '"'],
    ids=["empty cells", "cells", "cells over lines", "one cell over lines"],
)
@pytest.mark.parametrize("begin", ["", "8,cpu,1,"], ids=["in the first row", "below it"])
def test_a_row_without_end_is_refused_before_its_cells_are_made(begin, rest):
    tracemalloc.start()
    try:
        data = file(begin + rest) if begin else f"{HEADER},{rest}\n8,cpu,1\n".encode()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        assert "a row of more than 100,000 letters" in refusal(data)
        assert tracemalloc.get_traced_memory()[1] - before < 20 * len(data)
    finally:
        tracemalloc.stop()


def test_a_row_over_several_lines_and_many_rows_are_read_all_the_same():
    rows = [f'8,{device},1,"{"x" * 50_000}\n"' for _ in range(4) for device in ("cpu", "gpu")]
    (entry,) = timings.read(file(*rows, header=f"{HEADER},note"), "x").evidence
    assert len(entry.baseline_s) == 4


def test_more_columns_than_any_program_writes_are_refused():
    assert "1,003 columns; at most 1,000" in refusal(file("8,cpu,1", header=HEADER + ",x" * 1_000))


def test_what_is_said_of_a_file_is_short_whatever_it_is_called():
    header = f"{HEADER},{'x' * 90_000}"
    (note,) = timings.read(file(*(f"{row},1" for row in BOTH), header=header), "x").notes
    assert len(note) < 200
    assert len(refusal(file(f"8,cpu,{'1' * 90_000}"))) < 400


@pytest.mark.slow
def test_of_200_000_rows_none_is_lost():
    draw = random.Random(1)
    rows = [
        f"{2 ** draw.randrange(3, 13)},{draw.choice(('cpu', 'gpu'))},{draw.uniform(1, 2):.6f}" for _ in range(200_000)
    ]
    evidence = timings.read(file(*rows), "x").evidence
    assert sum(len(entry.baseline_s) + len(entry.challenger_s) for entry in evidence) == 200_000


@given(some.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_sentence(data):
    for prefix in (b"", b"size,device,seconds\n", b"size;device;seconds\n8;cpu;"):
        with contextlib.suppress(ForeignFile, InvalidValue):
            assert timings.read(prefix + data, "x").evidence
