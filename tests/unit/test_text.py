"""Text of others in each place where it comes to stand."""

import ast
import csv
import io
import json
import logging
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core import text
from tests.hostile import GFM, LEGITIMATE, STRANGER, TEXTS, UNSEEN, formulas, meanings, shown

ANY = some.text(
    some.characters() | some.sampled_from('=+-@;:/.w$<>[]|`\\\x1b\u202e\u200d\ufe0f\u3164\ud800\n\t "'), max_size=60
)
ONE_LINE = (
    text.to_page_markdown,
    text.to_table_cell,
    text.to_csv_cell,
    text.to_markdown,
    text.as_label,
    text.to_python_literal,
    text.to_file_name,
)
PLACES = (*ONE_LINE, text.as_lines, text.to_terminal, text.to_html)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_cannot_be_seen_passes_nowhere_and_nothing_goes_on_without_end(place):
    for foreign in (*TEXTS, " ".join(TEXTS)):
        made = place(foreign)
        assert not UNSEEN.search(made), ascii(made)
        assert len(made) < 2 * text.MOST_IN_CSV, ascii(foreign)
        assert place not in ONE_LINE or len(made.splitlines()) <= 1, ascii(foreign)


@given(ANY)
def test_what_cannot_be_seen_passes_nowhere_whatever_stands_beside_it(foreign):
    for place in PLACES:
        assert not UNSEEN.search(place(foreign))


@pytest.mark.parametrize("name", LEGITIMATE)
def test_a_text_with_nothing_wrong_about_it_is_shown_letter_for_letter(name):
    for place in (
        text.replace_invisible,
        text.as_lines,
        text.as_label,
        text.to_table_cell,
        text.to_csv_cell,
        text.to_terminal,
    ):
        assert place(name) == name
    assert shown(text.to_page_markdown(name)) == name
    assert rendered(text.to_markdown(name)) == name
    assert Read.of(text.to_html(name)).words == name
    assert ast.literal_eval(text.to_python_literal(name)) == name


@given(ANY)
def test_a_place_can_be_passed_twice(foreign):
    for place in (
        text.replace_invisible,
        text.as_lines,
        text.as_label,
        text.to_table_cell,
        text.to_csv_cell,
        text.to_terminal,
    ):
        assert place(place(foreign)) == place(foreign)


@pytest.mark.parametrize(
    "joined",
    ["a\u200db", "x\u200c", "\u200d❤", "7\ufe0f", "\u5b57\ufe0f", "е\U000e0100", "\U0001f3f4\U000e0067\U000e007f"],
)
def test_letters_that_join_others_are_let_through_only_where_a_script_needs_them(joined):
    assert text.REPLACEMENT in text.replace_invisible(joined)


@pytest.mark.slow
def test_what_is_not_looked_at_closely_is_always_let_through():
    usual = [letter for letter in map(chr, range(0x110000)) if not text._UNUSUAL.search(letter)]
    assert len(usual) > 30_000
    assert not [letter for letter in usual for found in (text._HIDDEN.search(letter * 20),) if found]


def test_a_pile_of_marks_ends_where_it_would_cover_the_line_above():
    pile = text.replace_invisible("e" + "\u0301" * 50 + " ok")
    assert pile.count("\u0301") == 8
    assert pile.endswith(" ok")


# A page


@given(ANY)
def test_nothing_of_a_foreign_text_means_anything_to_a_page(foreign):
    made = text.to_page_markdown(foreign)
    assert meanings(made) == []
    assert shown(made).split() == text.replace_invisible(foreign).split()


@pytest.mark.parametrize("around", ["{}", "**{}** and {}", "### {}", "- {}: {}", "{}{}", "x{}: y"])
def test_nor_does_it_between_words_of_ours(around):
    bare = set(meanings(around.format("x", "x")))
    for foreign in TEXTS:
        made = around.format(text.to_page_markdown(foreign), text.to_page_markdown(foreign))
        new = [found for found in meanings(made) if found not in bare and not found.startswith(("heading", "bullet"))]
        assert new == [], ascii(foreign)


def test_the_reader_of_these_tests_sees_what_a_page_makes_of_text():
    raw = {found for foreign in TEXTS for found in meanings(foreign)}
    for meant in (
        f"www.{STRANGER}",
        f"ada@{STRANGER}",
        ":streamlit:",
        ":material/home:",
        ":material_home:",
        ":heart:",
        "$x$",
    ):
        assert any(meant in found for found in raw), meant
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", f"https://{STRANGER} a@{STRANGER} :material_home: :heart: a -> b")
    assert len(set(meanings(escaped))) == 5, "escaped text is searched all the same"


# Tables and CSV


@given(some.lists(some.lists(ANY, min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_cell_begins_a_formula_whatever_parts_the_cells(rows):
    for place in (text.to_table_cell, text.to_csv_cell):
        file = io.StringIO(newline="")
        csv.writer(file).writerows([[place(cell) for cell in row] for row in rows])
        assert formulas(file.getvalue().encode()) == []


def test_a_number_stays_a_number_and_a_list_stays_one():
    assert [text.to_csv_cell(value) for value in (-1.5, 3, None, True)] == [-1.5, 3, None, True]
    assert [text.to_table_cell(value) for value in (-1.5, 3, None, True)] == [-1.5, 3, None, True]
    assert json.loads(text.to_csv_cell([-1.0, float("nan")])) == [-1.0, None]
    assert text.to_csv_cell(b"\xfb\xff") == "'+/8="


# A terminal and a log


@given(ANY)
def test_a_terminal_gets_lines_and_no_orders(foreign):
    assert all(letter == "\n" or letter >= " " for letter in text.to_terminal(foreign))


def test_a_line_of_a_log_gives_no_orders_either():
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(text.LogFormatter("%(levelname)s %(message)s"))
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "%s", ("\x9b31m",), __import__("sys").exc_info())
    handler.emit(record)
    said = handler.stream.getvalue()
    assert said.startswith("ERROR \ufffd31m\nTraceback")
    assert said.endswith("ValueError: \ufffd[2J\n")


# HTML and XML


class Read(HTMLParser):
    """What a browser finds in a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words += data

    @classmethod
    def of(cls, source: str) -> "Read":
        found = cls()
        found.feed(source)
        found.close()
        return found


@given(ANY)
def test_nothing_becomes_a_tag_and_all_of_it_is_xml(foreign):
    made = text.to_html(foreign)
    read = Read.of(f'<p title="{made}">{made}</p>')
    assert (read.tags, read.words) == (["p"], text.as_lines(foreign))
    assert ElementTree.fromstring(f"<p>{made}</p>").text in (text.as_lines(foreign), None)


# Markdown


def rendered(markdown: str) -> str:
    """The words of a paragraph."""
    return Read.of(GFM.render(markdown)).words.strip()


@given(ANY)
def test_a_report_shows_it_as_it_is(foreign):
    made = text.to_markdown(foreign)
    page = Read.of(GFM.render(made))
    assert set(page.tags) <= {"p", "code"}
    assert page.words.split() == text.replace_invisible(foreign).split()


@pytest.mark.parametrize("foreign", TEXTS, ids=lambda foreign: ascii(foreign)[:20])
def test_what_renderers_make_a_link_of_stands_in_a_report_as_code(foreign):
    tokens = GFM.parse(text.to_markdown(foreign))[1].children if text.to_markdown(foreign) else []
    words = "".join(token.content for token in tokens if token.type != "code_inline")
    assert STRANGER not in words
    assert ":heart:" not in words


@pytest.mark.parametrize("foreign", [*TEXTS, *LEGITIMATE], ids=lambda foreign: ascii(foreign)[:20])
def test_tensorboard_which_reads_markdown_of_its_own_kind_shows_it_too(foreign):
    plugin_util = pytest.importorskip("tensorboard.plugin_util")
    made = plugin_util.markdown_to_safe_html(f"| a |\n|---|\n| {text.to_markdown(foreign)} |")
    page = Read.of(made)
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert foreign not in LEGITIMATE or page.words.split() == ["a", *foreign.split()]


@given(some.lists(ANY, min_size=2, max_size=2))
def test_a_cell_of_a_table_stays_one(cells):
    made = [text.to_markdown(cell) for cell in cells]
    page = GFM.render(f"| a | b |\n|---|---|\n| {' | '.join(made)} |\n")
    assert Read.of(page).tags.count("td") == 2


# Names


@given(ANY)
def test_a_name_of_a_file_is_one_everywhere(foreign):
    name = text.to_file_name(foreign)
    assert re.fullmatch(r"[\w=][\w.=-]*", name)
    assert len(name) <= text.MOST_IN_FILE_NAME


@given(ANY)
def test_a_literal_is_one_line_of_source(foreign):
    made = text.to_python_literal(foreign)
    assert made.isascii()
    assert ast.literal_eval(made) == foreign
