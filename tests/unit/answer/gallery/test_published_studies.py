"""Tables of others: copied as they stand, with their sources, answered like anybody's timings."""

import shutil

import pytest

from core.answer.gallery.published import (
    PUBLISHED_STUDIES_FOLDER,
    find_published_curves,
    load_published_studies,
    load_published_tables,
)
from core.errors import DamagedFile
from core.question.experiment import Point


@pytest.fixture(scope="module")
def studies():
    return {study.name: study for study in load_published_studies()}


def test_every_table_that_lies_there_is_listed_and_every_listed_one_lies_there(studies):
    assert {file.stem for file in PUBLISHED_STUDIES_FOLDER.glob("*.csv")} == studies.keys() - {"signal"}


def test_each_says_who_published_it_and_how_the_figures_were_come_by(studies):
    for study in studies.values():
        assert all((study.source.name, study.source.cpu, study.source.gpu))
        assert study.source.note.endswith(".")


def test_what_is_copied_whole_is_under_a_licence_that_lies_beside_it(studies):
    licences = (PUBLISHED_STUDIES_FOLDER / "LICENSES.txt").read_text()
    copied = [study.source for study in studies.values() if study.name != "signal"]
    copied += [one.source for one in load_published_tables() if one.name != "simple-chains"]
    assert {source.licence for source in copied} == {"MIT", "Apache-2.0", "BSD-3-Clause"}
    assert all(source.address in licences for source in copied)


def test_figures_without_a_licence_are_quoted_and_say_so():
    (quoted,) = (one for one in load_published_tables() if not one.source.licence)
    assert quoted.name == "simple-chains"
    assert "quoted" in quoted.source.unknown


def test_every_source_of_the_new_tables_says_what_is_unknown(studies):
    named = ("brulee-batch", "xgboost-a10g", "lightgbm-a10g", "catboost-a10g", "lightgbm-azure", "lightgbm-yandex")
    shown = [*(studies[name] for name in named), *load_published_tables()]
    assert all(one.source.unknown.endswith(".") and one.source.date for one in shown)


def test_batch_sizes_cross_between_512_and_2048(studies):
    sizes = [(one.size, one.baseline_s, one.challenger_s) for one in studies["brulee-batch"].answer.sizes]
    assert sizes == [(128, 90.09, 111.54), (512, 26.22, 28.61), (2048, 11.07, 8.31), (8192, 4.42, 3.57)]
    assert studies["brulee-batch"].outcome == "crossing"


def test_only_the_tables_along_virtual_cpus_are_not_by_size(studies):
    assert {study.source.name.split(",")[0] for study in studies.values() if not study.is_by_size} == {"Max Woolf"}


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
    shutil.copytree(PUBLISHED_STUDIES_FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "studies.toml").write_text("[sources")
    with pytest.raises(DamagedFile, match=r"studies\.toml"):
        load_published_studies(tmp_path)


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
    assert studies["xgboost"].headline.startswith("Somewhere between ")
    assert " rows, training on the GPU becomes faster than on the CPU (if readings" in studies["xgboost"].headline


def test_its_mark_names_the_source_and_its_date(studies):
    assert studies["xgboost"].mark == "Published, not measured here: Szilard Pafka, GBM-perf, 2024-06-06"
    assert studies["signal"].mark.endswith(", undated")


def test_published_curves_are_those_of_the_same_data_and_model_or_of_the_same_library():
    signal = find_published_curves(Point(dataset="signal", model="mlp"), "hidden_size")
    assert [(curve.speedups[-1][0], curve.wins_from) for curve in signal] == [(2_000, 1_000)]
    disc = find_published_curves(Point(dataset="disc", model="doubling-mlp"), "depth")
    assert [(curve.speedups, curve.wins_from) for curve in disc] == [((), 10)]
    trees = find_published_curves(Point(dataset="signal", model="xgboost"), "samples")
    assert {curve.source for curve in trees} >= {"Szilard Pafka, GBM-perf, 2024-06-06"}
    assert all(curve.address.startswith("https://") for curve in trees)
    assert find_published_curves(Point(dataset="signal", model="xgboost"), "leaves") == ()
    assert find_published_curves(Point(dataset="digits", model="mlp"), "hidden_size") == ()
