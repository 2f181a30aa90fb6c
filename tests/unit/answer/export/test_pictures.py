"""Charts as files: pictures that show them, and pages that need no network and run no text of a row."""

import json
import re
import struct
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answer.charts import run_charts
from core.answer.export import rendering
from core.errors import CrossoverError
from tests.hostile import UNSEEN
from tests.rows import run

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert(1)</script>\u2028<img src=http://example.org/x onerror=alert(2)>"


@pytest.fixture(scope="module")
def spec():
    return run_charts.loss_over_time_chart(run())


def test_a_png_is_as_wide_as_is_said(spec):
    data = rendering.draw_picture(spec, "png")
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width >= rendering.PICTURE_WIDTH * rendering.SCALE
    assert height > 200


def test_an_svg_is_a_well_formed_picture_with_the_axes_titles(spec):
    data = rendering.draw_picture(spec, "svg")
    assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"loss" in data.lower()


def test_a_page_holds_the_chart_and_all_that_draws_it(spec):
    text = rendering.chart_page(spec, "Loss over time").decode()
    assert "<title>Loss over time</title>" in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "vegaEmbed" in text
    embedded = re.search(r'<script id="spec" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert embedded
    assert json.loads(embedded[1])["data"] == spec["data"]


def test_no_text_of_a_row_leaves_the_place_of_data_in_a_page(spec):
    rows = [{**row, "name": HOSTILE} for row in spec["data"]["values"]]
    plain = rendering.chart_page(spec, "x").decode()
    text = rendering.chart_page({**spec, "data": {"values": rows}}, HOSTILE).decode()
    assert text.lower().count("<script") == plain.lower().count("<script")
    assert text.lower().count("</script") == plain.lower().count("</script")
    assert text.count("<img") == plain.count("<img")  # the library has one
    assert "default-src 'none'" in text


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(CrossoverError, match="cannot be saved as a file"):
        rendering.draw_picture({"mark": 7}, "svg")


def test_several_charts_are_drawn_at_once_in_their_order(spec):
    drawn = rendering.draw_svgs([spec, {**spec, "width": 300}], width=640)
    widths = [float(re.search(r'width="([\d.]+)"', text)[1]) for text in drawn]
    assert widths[0] >= 640 > widths[1] >= 300
    assert all('fill="white"' in text for text in drawn)
    assert spec["width"] == "container"
    assert rendering.draw_svgs([]) == []


@given(text=st.text())
def test_what_is_drawn_has_no_letter_that_ends_the_drawing(text):
    (found,) = rendering.clean_spec({text: [text, 1.5, None]}).items()
    assert not UNSEEN.search(found[0] + found[1][0])
    assert found[1][1:] == [1.5, None]
    assert len(found[0]) == len(text.replace("\r\n", "\n"))


def test_this_process_keeps_no_engine(spec, monkeypatch):
    monkeypatch.delitem(sys.modules, "vl_convert", raising=False)  # other tests draw in this process
    rendering.draw_picture(spec, "svg")
    assert "vl_convert" not in sys.modules
