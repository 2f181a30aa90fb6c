"""Tables of others: copied as they stand, with their sources, answered like anybody's timings."""

import shutil

import pytest

from core.answer.gallery.published_studies import FOLDER, published_studies
from core.errors import DamagedFile


@pytest.fixture(scope="module")
def studies():
    return {study.name: study for study in published_studies()}


def test_every_table_that_lies_there_is_listed_and_every_listed_one_lies_there(studies):
    assert {file.stem for file in FOLDER.glob("*.csv")} == studies.keys() - {"signal"}


def test_each_says_who_published_it_and_how_the_figures_were_come_by(studies):
    for study in studies.values():
        assert all((study.source.name, study.source.cpu, study.source.gpu))
        assert study.source.note.endswith(".")


def test_what_is_copied_whole_is_under_a_licence_that_lies_beside_it(studies):
    licences = (FOLDER / "LICENSES.txt").read_text()
    copied = [study.source for study in studies.values() if study.name != "signal"]
    assert {source.licence for source in copied} == {"MIT"}
    assert all(source.address in licences for source in copied)


def test_figures_are_those_of_the_source(studies):
    xgboost = [(size.size, size.baseline_s, size.challenger_s) for size in studies["xgboost"].answer.sizes]
    assert xgboost == [(1e5, 0.4, 0.7), (1e6, 2.7, 1.3), (1e7, 40.0, 5.0)]
    lstm = studies["bilstm-imdb"].answer.sizes
    assert [round(size.baseline_s) for size in lstm] == [144, 129, 137, 140]
    assert {round(size.challenger_s) for size in lstm} == {308}


def test_there_are_answers_for_either_device(studies):
    assert studies["cnn-mnist"].answer.outcome == "gpu_always"
    assert studies["bilstm-imdb"].answer.outcome == "cpu_always"


def test_a_list_that_is_torn_is_named(tmp_path):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "studies.toml").write_text("[sources")
    with pytest.raises(DamagedFile, match=r"studies\.toml"):
        published_studies(tmp_path)


def test_there_are_all_kinds_of_answer_and_what_is_assumed_is_said(studies):
    kinds = {name: study.outcome for name, study in studies.items()}
    assert kinds["xgboost"] == kinds["signal"] == "crossing"
    assert kinds["lightgbm"] == "cpu_always"
    assert {"crossing", "gpu_always", "cpu_always", "undecided"} <= set(kinds.values())
    for study in studies.values():
        once = all(len(entry.baseline_s) == len(entry.challenger_s) == 1 for entry in study.evidence)
        assert once == ("f readings scatter by about" in study.headline)


def test_an_answer_begins_like_a_sentence_and_names_what_is_varied(studies):
    assert studies["cnn-mnist"].headline.startswith("The GPU is faster")
    assert "from 8 to 64 virtual CPUs" in studies["cnn-mnist"].headline
    assert studies["xgboost"].headline.startswith("If readings scatter by about ")
    assert ", the GPU becomes faster than the CPU somewhere between " in studies["xgboost"].headline
    assert studies["xgboost"].headline.endswith(" rows.")


def test_its_mark_names_the_source_and_its_date(studies):
    assert studies["xgboost"].mark == "Published, not measured here: Szilard Pafka, GBM-perf, 2024-06-06"
    assert studies["signal"].mark.endswith(", undated")
