"""`crossover --csv`: anyone's timings get the answer that they allow, and no better one."""

import math
import random

import pytest

NEURONS = (5, 10, 100, 1_000, 2_000)
PUBLISHED = {"cpu": (180, 180, 200, 680, 2_430), "gpu": (505, 555, 505, 505, 505)}
"""Seconds read off the published figure of the tutorial, one reading each."""

CURVES = {
    "crossing": lambda size: math.log2(size / 300) / 2,
    "gpu_always": lambda size: 1.0 + math.log2(size) / 10,
    "cpu_always": lambda size: -1.0 - math.log2(size) / 10,
    "several": lambda size: math.sin((math.log2(size) - 4.5) * math.pi / 2),
}
"""Log speedup by size; the last crosses three times between 2⁴ and 2¹⁰."""


@pytest.fixture
def csv(tmp_path):
    def write(*rows: str, header: str = "size,device,seconds"):
        file = tmp_path / "mine.csv"
        file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return file

    return write


def curve(name: str, *, sizes=tuple(2**power for power in range(4, 11)), repeats=7, noise=0.02) -> list[str]:
    draw = random.Random(name)
    rows = []
    for size in sizes:
        for device, seconds in (("cpu", 1e-6 * size), ("gpu", 1e-6 * size / math.exp(CURVES[name](size)))):
            rows += [f"{size},{device},{seconds * draw.lognormvariate(0, noise):.9g}" for _ in range(repeats)]
    draw.shuffle(rows)
    return rows


def test_the_published_figure_is_refused_an_interval_and_told_where_the_sides_change(command, csv):
    rows = [f"{size},{device},{s}" for device in PUBLISHED for size, s in zip(NEURONS, PUBLISHED[device], strict=True)]
    document = command("crossover", "--csv", csv(*rows), "--json").json
    assert document["outcome"] == "undecided"
    assert (document["estimate"], document["low"], document["high"]) == (None, None, None)
    assert "100 and 1,000" in document["reason"]
    assert [size["verdict"] for size in document["sizes"]] == ["missing"] * 5
    assert document["basis"] == "as_given"


@pytest.mark.parametrize("name", CURVES)
def test_each_curve_gets_its_outcome(command, csv, name):
    document = command("crossover", "--csv", csv(*curve(name)), "--json").json
    assert document["outcome"] == name
    assert len(document["sizes"]) == 7
    assert {size["readings"] for size in document["sizes"]} == {7}
    if name == "crossing":
        assert document["low"] <= 300 <= document["high"]
        assert document["low"] < document["estimate"] < document["high"]
    else:
        assert (document["estimate"], document["low"], document["high"]) == (None, None, None)
    if name == "several":
        places = [(one["low"], one["high"]) for one in document["crossings"]]
        assert len(places) == 3
        assert all(low <= 2**power <= high for (low, high), power in zip(places, (4.5, 6.5, 8.5), strict=True))


def test_sizes_that_one_device_lacks_are_listed_and_leave_the_answer(command, csv):
    rows = [row for row in curve("crossing") if not row.startswith(("64,cpu", "1024,gpu"))]
    document = command("crossover", "--csv", csv(*rows), "--json").json
    assert document["outcome"] == "crossing"
    missing = {size["size"]: size["reason"] for size in document["sizes"] if size["verdict"] == "missing"}
    assert missing == {64.0: "only timed on gpu", 1024.0: "only timed on cpu"}


def test_a_single_size_is_not_measurable(command, csv):
    done = command("crossover", "--csv", csv("8,cpu,1", "8,gpu,2"), "--json")
    assert (done.status, done.json["outcome"]) == (0, "not_measurable")


@pytest.mark.parametrize("order", ["cpu,gpu", "gpu,cpu"])
def test_the_outcome_is_named_for_the_gpu_whichever_device_is_named_first(command, csv, order):
    document = command("crossover", "--csv", csv(*curve("gpu_always")), "--devices", order, "--json").json
    assert (document["outcome"], document["baseline"]) == ("gpu_always", "cpu")


def test_the_text_has_the_sentence_a_line_for_each_size_and_what_was_not_used(command, csv):
    rows = [f"{row},x" for row in curve("crossing")]
    done = command("crossover", "--csv", csv(*rows, header="size,device,seconds,note"), "--axis", "neurons")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "gpu is faster than cpu from" in lines[0]
    assert lines[2].startswith("neurons  cpu")
    assert [line.split()[0] for line in lines[3:10]] == ["16", "32", "64", "128", "256", "512", "1,024"]
    assert lines[-1] == "The column note was not used."


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        (("8,cpu,1", "8,gpu,-2"), "size,device,seconds", "seconds in line 3 must be "),
        (("8,cpu,1", "8,gpu,quick"), "size,device,seconds", "seconds in line 3 must be "),
        (("a,cpu,1",), "name,device,seconds", "mine.csv has no column size"),
        ((), "size,device,seconds", "mine.csv has no readings"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_wrong_file_is_a_usage_error_in_one_sentence(command, csv, rows, header, words, form):
    done = command("crossover", "--csv", csv(*rows, header=header), *form)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--devices", "cpu"), "two different devices"),
        (("--devices", "cpu,tpu"), "--devices must be in the file, whose devices are cpu, gpu"),
        (("--study", "ab"), "given without --study"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(command, csv, arguments, words):
    done = command("crossover", "--csv", csv("8,cpu,1", "8,gpu,2"), *arguments)
    assert done.status == 2
    assert words in done.err


def test_two_devices_of_which_no_name_says_cpu_are_not_taken_in_any_order(command, csv):
    file = csv("64;80,5;1", "128;160;1,5", header="size;Xeon (ms);A100 (ms)")
    done = command("crossover", "--csv", file, "--json")
    assert (done.status, done.out) == (2, "")
    assert "a baseline and a challenger out of A100, Xeon" in done.err
    document = command("crossover", "--csv", file, "--devices", "Xeon,A100", "--json").json
    assert (document["baseline"], document["challenger"], document["notes"]) == ("Xeon", "A100", [])
    assert document["sizes"][0]["speedup"] == pytest.approx(80.5)
    assert document["busy"] == ""


def test_a_file_that_is_not_there_fails(command, tmp_path):
    done = command("crossover", "--csv", tmp_path / "nowhere.csv")
    assert (done.status, done.out) == (1, "")
    assert "nowhere.csv cannot be read: No such file" in done.err
