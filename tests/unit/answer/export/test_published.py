"""A published study in a file: whose figures it has, since when, under which licence, and the figures themselves."""

import pytest

from core.answer import timings_csv
from core.answer.charts import gallery_charts as charts
from core.answer.charts.look import DEVICE_COLOURS
from core.answer.export import handout
from core.answer.gallery.published import load_published_studies

STUDIES = load_published_studies()
COPIED = [study for study in STUDIES if study.source.licence]


def ids(study):
    return study.name


@pytest.mark.parametrize("study", STUDIES, ids=ids)
def test_the_table_says_whose_it_is_and_reads_back_as_it_was(study):
    text = handout.study_csv(study)
    assert f"# Published by: {study.source.cited}" in text
    read = timings_csv.read_timings(text.encode(), "taken.csv")
    assert [entry.size for entry in read.evidence] == [entry.size for entry in study.evidence]
    for back, entry in zip(read.evidence, study.evidence, strict=True):
        assert (back.baseline_s, back.challenger_s) == (
            tuple(sorted(entry.baseline_s)),
            tuple(sorted(entry.challenger_s)),
        )


@pytest.mark.parametrize("study", COPIED, ids=ids)
def test_what_was_copied_whole_carries_its_licence_and_address(study):
    assert f"# Licence: {study.source.licence}" in handout.study_csv(study)
    assert f"# Address: {study.source.address}" in handout.study_csv(study)
    paper = handout.handout_markdown(handout.study_report(study, "https://here.test/gallery?study=x"))
    assert f"Licence: {study.source.licence}" in paper
    assert study.source.address in paper


def test_the_report_has_the_answer_the_figures_and_both_machines():
    study = next(study for study in STUDIES if study.name == "xgboost")
    paper = handout.handout_markdown(handout.study_report(study, "https://here.test/gallery?study=xgboost"))
    for said in (
        study.headline,
        study.mark,
        study.source.cpu,
        study.source.gpu,
        "| 10,000,000 | 40.0 s | 5.00 s | 8.00× |",
    ):
        assert said in paper


def test_the_picture_says_whose_figures_it_shows_with_hollow_points_in_colours_of_their_own():
    study = STUDIES[1]
    spec = charts.chart_published_study(study)
    assert study.source.cited in spec["title"]["text"][0]
    points = [layer["mark"] for layer in spec["layer"] if layer["mark"].get("type") == "point"]
    assert points
    assert not any(mark["filled"] for mark in points)
    colours = {
        hue
        for layer in spec["layer"]
        if "color" in layer.get("encoding", {})
        for hue in layer["encoding"]["color"]["scale"]["range"]
    }
    assert colours
    assert not colours & set(DEVICE_COLOURS.values())
