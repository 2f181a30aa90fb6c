"""Bringing a file to the Gallery: nothing of it shows before it was checked, and nothing is kept before a click."""

import pytest

from core.results.exchange import export
from core.results.parquet import to_table
from pages.shared import layout
from tests import rows
from tests.ui.conftest import checked, words

PAGE = layout.GALLERY


@pytest.fixture
def upload(open_page):
    def uploaded(content: bytes, name: str = "lab.parquet"):
        app = open_page(PAGE)
        app.file_uploader(key="import_file").upload(name, content, "application/octet-stream")
        return checked(app.run())

    return uploaded


def _file(trials) -> bytes:
    return export(to_table(trials), "parquet")


def _buttons(app) -> list[str]:
    return [button.label for button in app.button if button.key == "import_keep"]


def test_a_file_shows_what_it_would_add_and_a_click_keeps_it(world, upload):
    app = upload(_file(rows.run()))
    assert "2 rows would be added." in words(app).replace("*", "")
    assert world.store.trials() == []
    checked(app.button(key="import_keep").click().run())
    assert {row.origin for row in world.store.trials()} == {"lab.parquet"}
    assert "All rows of the file are already here." in words(app)
    assert _buttons(app) == []


def test_rows_that_are_here_already_are_counted(world, upload):
    world.keep(rows.run())
    app = upload(_file([*rows.run(), *rows.run(run_id="b" * 12)]))
    assert "2 rows would be added, 2 rows of the file are here already" in words(app).replace("*", "")
    assert _buttons(app) == ["Keep 2 rows"]


@pytest.mark.parametrize("content", [b"", b"PAR1 no file PAR1", _file(rows.run())[:-30]])
def test_a_broken_file_is_refused_in_one_sentence(world, upload, content):
    app = upload(content, "<b>lab</b>.parquet")
    (error,) = [found.value.replace("\\", "") for found in app.error]
    assert "was not imported: it is incomplete or not a parquet file" in error
    assert "<b>" not in error
    assert _buttons(app) == []
    assert world.store.trials() == []


def test_text_of_a_file_is_shown_as_text(world, upload):
    hostile = '<img src=x onerror="alert(1)">![a](http://example.org/a.png) :red[b] $x$'
    app = upload(_file([rows.trial(device_name=hostile, cpu_name=hostile, message=hostile)]))
    assert hostile not in words(app)
    (shown,) = [frame.value for frame in app.dataframe if "Measured" in frame.value.columns]
    assert shown["Name"].tolist() == [hostile]
    checked(app.button(key="import_keep").click().run())
    assert [row.device_name for row in world.store.trials()] == [hostile]


def test_a_host_that_is_read_only_takes_no_file(world, open_page, monkeypatch, tmp_path):
    (tmp_path / "policy.toml").write_text('who_may_run = "nobody"\nread_only_gallery = true\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(tmp_path / "policy.toml"))
    app = open_page(PAGE)
    assert "read-only" in words(app)
    assert not [found for found in app.get("file_uploader") if found.proto.label == "Parquet file"]
