"""Templates: what a value says is never markup, unless the template calls it safe, and what is not given is refused."""

import subprocess
import sys

import pytest
from jinja2 import UndefinedError

from core.answer.export import rendering
from core.files.project import PROJECT
from core.text import to_html, to_python_literal

HOSTILE = "<b>'{{ 7 }}'"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(rendering, "TEMPLATE_FOLDER", tmp_path)
    rendering._environment.cache_clear()
    yield tmp_path
    rendering._environment.cache_clear()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ value }}", to_html(HOSTILE)),
        ("{{ value | safe }}", HOSTILE),
        ("{{ value ~ value }}", to_html(HOSTILE + HOSTILE)),
        ("{% macro cell(text) %}<i>{{ text }}</i>{% endmacro %}{{ cell(value) }}", f"<i>{to_html(HOSTILE)}</i>"),
        ("{% for each in [value] %}\n{{ each }}\n{% endfor %}\n", f"{to_html(HOSTILE)}\n"),
    ],
)
def test_a_value_is_made_fit_for_its_place_once(folder, text, shown):
    (folder / "file").write_text(text)
    assert rendering.fill_template("file", to_html, value=HOSTILE) == shown


def test_each_place_has_its_own_way_to_be_fit_for(folder):
    (folder / "file").write_text("{{ value }} {{ number }}")
    assert rendering.fill_template("file", to_python_literal, value=HOSTILE, number=3) == f"{HOSTILE!r} 3"


def test_what_is_not_given_is_no_empty_text(folder):
    (folder / "file").write_text("{{ value }}")
    with pytest.raises(UndefinedError):
        rendering.fill_template("file", to_html)


@pytest.mark.slow
def test_drawing_a_picture_and_opening_a_page_do_not_wait_for_jinja():
    code = "import core.answer.export.rendering, core.answer.export.report, sys; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
