"""A lesson on paper: everything a student and a file wrote is shown and none of it acts, in Markdown and in HTML."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from core.answer.charts import run_charts
from core.answer.export import handout, rendering
from core.answer.export.handout import Handout, HandoutReply
from core.answer.lessons.outcomes import Section, SectionFigure, SectionListing, SectionTable
from core.errors import CrossoverError
from tests import rows
from tests.hostile import GFM

pytestmark = pytest.mark.slow

HOSTILE = '<script>alert(1)</script> "x" | [l](javascript:alert(1)) <img src=x onerror=alert(1)> `'
RUN = rows.run(device_name=HOSTILE)


def paper(text: str = HOSTILE, trials=RUN) -> Handout:
    section = Section(
        title=text,
        sentences=(text,),
        figures=(SectionFigure(title=text, spec=run_charts.epoch_times_chart(trials)),),
        tables=(SectionTable(title=text, header=("Device", text), rows=((text, "1"),)),),
        listings=(SectionListing(title=text, code=text, output=text),),
        notes=(text,),
    )
    return Handout(
        title=text,
        student=text,
        date="21 November 2026",
        link=text,
        predictions=(HandoutReply(question=text, text=text),),
        sections=(section,),
        answers=(HandoutReply(question=text, text=text),),
        machine=handout.handout_environment(trials),
    )


class Reader(HTMLParser):
    """Collects the tags with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_html_has_the_chart_inline_and_nothing_that_acts_or_loads():
    text = handout.handout_html(paper())
    page = read(text)
    names = {tag for tag, _ in page.tags}
    assert "svg" in names
    assert names.isdisjoint({"script", "img", "iframe", "object", "link", "foreignobject", "a", "image"})
    attributes = [name for _, found in page.tags for name in found]
    assert not [name for name in attributes if name.startswith("on")]
    assert "src" not in attributes
    assert "default-src 'none'" in text


def test_html_shows_what_was_written_as_it_was_written():
    shown = "".join(read(handout.handout_html(paper())).text)
    assert shown.count(HOSTILE) >= 10


def test_markdown_outside_of_code_keeps_no_punctuation_with_a_meaning():
    text = handout.handout_markdown(paper())
    prose = re.sub(r"^(`{3,})\w+\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    tokens = [part for token in GFM.parse(prose) for part in (token, *(token.children or ()))]
    made = {token.type for token in tokens} & {"html_inline", "html_block", "link_open", "image", "s_open"}
    assert made == set()
    assert any("<script>" in token.content for token in tokens if token.type == "text")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1. no list", r"1\. no list"),
        ("- no list", r"\- no list"),
        ("# no heading", r"\# no heading"),
        ("a 1.5× speedup, 95 % (so far)", "a 1.5× speedup, 95 % (so far)"),
        ("at http://evil, or www.evil", "at `http://evil,` or `www.evil`"),
        ("15.7 ms", "15.7 ms"),
    ],
)
def test_only_what_markdown_would_not_show_as_it_is_gets_a_backslash(written, shown):
    section = Section(title="T", sentences=(written,))
    text = handout.handout_markdown(Handout(**{**vars(paper("plain")), "sections": (section,)}))
    assert f"\n\n{shown}\n\n" in text


def test_the_address_of_the_page_can_be_followed_and_nothing_else_can():
    own = handout.handout_markdown(
        Handout(**{**vars(paper("plain")), "link": "http://localhost:8501/lessons?lesson=clock"})
    )
    assert "<http://localhost:8501/lessons?lesson=clock>" in own
    other = handout.handout_markdown(Handout(**{**vars(paper("plain")), "link": "javascript:alert(1)"}))
    assert "<javascript" not in other


@pytest.mark.parametrize("inside", ["```", "a ````` b", "no fence"])
def test_code_in_markdown_is_fenced_by_more_than_it_holds(inside):
    section = Section(title="Code", listings=(SectionListing(title="Lines", code=inside, output="x"),))
    text = handout.handout_markdown(Handout(**{**vars(paper("plain")), "sections": (section,)}))
    longest = max((len(found) for found in re.findall("`+", inside)), default=0)
    fence = re.search(r"^(`{3,})python$", text, flags=re.MULTILINE)
    assert fence
    assert len(fence[1]) > longest


def test_a_table_of_markdown_has_as_many_cells_in_each_line_whatever_is_in_them():
    section = Section(
        title="T",
        tables=(
            SectionTable(
                title="T",
                header=("a|b", "c"),
                rows=(("x | y", "z"), ("---", "")),
            ),
        ),
    )
    text = handout.handout_markdown(Handout(**{**vars(paper("plain")), "sections": (section,), "machine": ()}))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}


def test_both_forms_hold_name_expectation_answer_sentence_table_and_machine():
    section = Section(
        title="Seen", sentences=("It is so.",), tables=(SectionTable(title="T", header=("h",), rows=(("c",),)),)
    )
    plain = Handout(
        title="Lesson",
        student="Ada Lovelace",
        date="today",
        link="http://here/x",
        predictions=(HandoutReply(question="What do you expect?", text="nothing"),),
        sections=(section,),
        answers=(HandoutReply(question="And now?", text="first line\nsecond line"),),
        machine=(("torch", "9"),),
    )
    pieces = ("Ada Lovelace", "What do you expect", "nothing", "It is so", "And now", "second line", "torch")
    for text in (handout.handout_html(plain), handout.handout_markdown(plain)):
        assert all(piece in text for piece in pieces)


def test_who_gives_no_name_and_no_reply_is_told_so_in_both():
    empty = Handout(**{**vars(paper("plain")), "student": " ", "answers": (HandoutReply(question="And?", text=""),)})
    for text in (handout.handout_html(empty), handout.handout_markdown(empty)):
        assert "No name given" in text
        assert "No reply" in text


@pytest.mark.parametrize("letter", ["\x00", "\x1b", "\x7f", "\u2028", "\u2029", "\ud800", "\ufeff", "\u202e", "\uffff"])
def test_no_letter_of_a_file_ends_the_report_or_the_process_that_makes_it(letter):
    """A NUL in the title of an exhibit ended the server, as the library that draws charts aborts its process."""
    text = handout.handout_html(paper(f"a{letter}b", trials=rows.run(device_name=f"a{letter}b")))
    assert "<svg" in text
    assert letter not in text


def test_a_chart_that_cannot_be_drawn_leaves_the_rest_of_the_report(monkeypatch):
    def refused(*_: object) -> list[str]:
        raise CrossoverError("This chart cannot be drawn.")

    monkeypatch.setattr(rendering, "draw_svgs", refused)
    text = handout.handout_html(paper("plain"))
    assert handout.NOT_DRAWN in text
    assert "Measured on" in text


def test_all_charts_of_a_report_are_drawn_by_one_process_and_none_by_this_one(monkeypatch):
    monkeypatch.delitem(sys.modules, "vl_convert", raising=False)  # other tests draw in this process
    made, real = [], rendering._convert_chart
    monkeypatch.setattr(rendering, "_convert_chart", lambda kind, what: made.append(kind) or real(kind, what))
    several = Handout(**{**vars(paper("plain")), "sections": paper("plain").sections * 3})
    assert handout.handout_html(several).count("<svg") == 3
    assert made == ["drawings"]
    assert "vl_convert" not in sys.modules


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_report_is_letter_for_letter_what_it_was(form):
    """Written by the first version, which put the pieces together without templates."""
    section = Section(
        title="Seen",
        sentences=("It is so.", "", "a|b"),
        tables=(SectionTable(title="T", header=("h", "i"), rows=(("c", "<d>"), ("", "e"))),),
        listings=(SectionListing(title="L", code="x = 1\n", output=""),),
        notes=("N",),
    )
    report = Handout(
        title="Lesson",
        student="Ada",
        date="today",
        link="http://here/x",
        predictions=(HandoutReply(question="Before?", text="one\n\ntwo"),),
        sections=(section, Section(title="Bare")),
        answers=(HandoutReply(question="After?", text=""),),
        machine=(("torch", "9"),),
    )
    file = Path(__file__).with_name(f"lesson_report_{form}.txt")
    assert getattr(handout, f"handout_{form}")(report) == file.read_text(encoding="utf-8")
