"""Tables of timings that are refused, each in a sentence that names the place."""

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.answer import text_table, timings_csv
from core.errors import ForeignFile, InvalidValue
from tests.unit.answer.study.brought.made import BOTH, HEADER, file, refusal


@pytest.mark.parametrize(
    ("devices", "words"), [(("cpu", "xpu"), "(got 'xpu')"), (("cpu", "cpu"), "two different devices")]
)
def test_devices_that_cannot_be_chosen_are_refused(devices, words):
    assert words in refusal(file(*BOTH), devices=devices)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("8,cpu,-1", "seconds in line 3 must be a number above 0 (got '-1')."),
        ("8,cpu,0", "seconds in line 3 must be "),
        ("8,cpu,fast", "seconds in line 3 must be "),
        ("8,cpu,nan", "seconds in line 3 must be "),
        ("8,cpu,inf", "seconds in line 3 must be "),
        ("8,cpu,1e999", "seconds in line 3 must be "),
        ("8,cpu,", "seconds in line 3 must be a number above 0 (got nothing)."),
        ("8,cpu,1_0", "seconds in line 3 must be "),
        ('8,cpu,"0,5"', "with a decimal point if it is not whole, as in line 2"),
        ('8,cpu,"1,5,0"', "with a decimal point if it is not whole"),
        ("big,cpu,1", "size in line 3 must be "),
        ("-8,cpu,1", "size in line 3 must be "),
        ("0,cpu,1", "size in line 3 must be "),
        ("nan,cpu,1", "size in line 3 must be "),
        ("8,,1", "device in line 3 must be a name of at most"),
        (f"8,{'c' * 101},1", "a name of at most 100 printable characters"),
        ("8,c\x00pu,1", "printable characters"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_line(row, words):
    with pytest.raises(InvalidValue):
        timings_csv.read_timings(file(BOTH[0], row, *BOTH[1:]), "x")
    assert words in refusal(file(BOTH[0], row, *BOTH[1:]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "mine.csv is empty"),
        (b"\n  \n", "mine.csv is empty"),
        (file(), "mine.csv has no readings"),
        (file("8,cpu", header="size,device"), "has no column seconds: its first row is 'size, device'"),
        (file("8,cpu,1", header="neurons,where,time"), "has no column device: its first row"),
        (file("8,0.1", header="8,0.2"), "has no header row"),
        (file("8,0.1", header="size,cpu"), "has no header row"),
        (file("8,1,2", header="size,cpu,0.5"), "has no header row"),
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
        timings_csv.read_timings(data, "mine.csv")
    assert words in refusal(data)


def test_one_device_alone_has_nothing_to_be_compared_with():
    assert "device must be " in refusal(file("8,cpu,1", "16,cpu,2"))


@pytest.mark.parametrize(
    ("bound", "rows", "words"),
    [
        ("MAX_READINGS", BOTH, "more than 3 readings"),
        ("MAX_SIZES", [f"{size},cpu,1" for size in range(1, 6)], "at most 3 sizes"),
        ("MAX_DEVICES", [f"8,cpu{number},1" for number in range(5)], "at most 3 devices"),
        ("MAX_TIMINGS_BYTES", BOTH, "the limit is 3"),
        ("MAX_LINES", BOTH, "the limit is 3"),
    ],
)
def test_a_file_beyond_the_bounds_is_refused(monkeypatch, bound, rows, words):
    monkeypatch.setattr(text_table if hasattr(text_table, bound) else timings_csv, bound, 3)
    assert words in refusal(file(*rows))


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_counted_before_anything_is_made_of_them(monkeypatch, end):
    monkeypatch.setattr(text_table.csv, "reader", lambda *_, **__: pytest.fail("parsed"))
    data = ("size,device,seconds" + end * (text_table.MAX_LINES + 1)).encode()
    assert f"{text_table.MAX_LINES + 1:,} lines; the limit is" in refusal(data)


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
        assert "a row of more than 100,000 characters" in refusal(data)
        assert tracemalloc.get_traced_memory()[1] - before < 20 * len(data)
    finally:
        tracemalloc.stop()


def test_a_row_over_several_lines_and_many_rows_are_read_all_the_same():
    rows = [f'8,{device},1,"{"x" * 50_000}\n"' for _ in range(4) for device in ("cpu", "gpu")]
    (entry,) = timings_csv.read_timings(file(*rows, header=f"{HEADER},note"), "x").evidence
    assert len(entry.baseline_s) == 4


def test_more_columns_than_any_program_writes_are_refused():
    assert "1,003 columns; the limit is 1,000" in refusal(file("8,cpu,1", header=HEADER + ",x" * 1_000))


def test_what_is_said_of_a_file_is_short_whatever_it_is_called():
    header = f"{HEADER},{'x' * 90_000}"
    (note,) = timings_csv.read_timings(file(*(f"{row},1" for row in BOTH), header=header), "x").notes
    assert len(note) < 200
    assert len(refusal(file(f"8,cpu,{'1' * 90_000}"))) < 400


@given(some.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_sentence(data):
    for prefix in (b"", b"size,device,seconds\n", b"size;device;seconds\n8;cpu;"):
        with contextlib.suppress(ForeignFile, InvalidValue):
            assert timings_csv.read_timings(prefix + data, "x").evidence
