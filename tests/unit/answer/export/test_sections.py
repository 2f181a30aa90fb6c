"""What lessons say: change the rows or the exhibit, and the sentence changes with them."""

import dataclasses

import pytest

from core.answer import speedup
from core.answer.charts import lesson_charts
from core.answer.export import sections
from core.answer.lessons import tutorials
from core.answer.verdict import QUIET_NOTE
from core.question.presets import PRESETS
from tests import exhibited, rows
from tests.studies import batches, measured, seeds, ways

PAIR = ("cpu", "cuda:0")
MARK = "Recorded on a Test GPU."


def said(found) -> str:
    return " ".join(sentence for section in found for sentence in section.sentences)


def cells(section) -> list[str]:
    return [cell for table in section.tables for row in table.rows for cell in row]


def test_a_clock_that_says_a_fifth_is_said_to_say_a_fifth():
    short, right = (sections.clock_section(exhibited.clock({"ours": 1.0, "no_drain": factor})) for factor in (0.2, 1.0))
    assert "On the GPU: “No synchronization” says 200 µs, 20 % of Crossover's time." in short.sentences
    assert not any("20 %" in sentence for sentence in right.sentences)
    assert len(short.figures) == 1


def test_the_speedup_by_every_clock_stands_beside_the_one_by_ours():
    shown = exhibited.clock({"ours": 1.0, "loader_inside": 5.0})
    flat = tuple(
        dataclasses.replace(entry, epoch_s=(1.0,)) if entry.name == "loader_inside" else entry
        for entry in shown.content.variants
    )
    found = sections.clock_section(
        dataclasses.replace(shown, content=dataclasses.replace(shown.content, variants=flat))
    )
    assert (
        "By Crossover's clock the GPU is 10.0× as fast as the CPU; by the other the speedup is 1.00× (Loader inside)."
        in found.sentences
    )


def test_each_device_has_one_column_with_its_time_and_how_often_ours_fits_into_it():
    found = sections.clock_section(exhibited.clock({"ours": 1.0, "disc": 1.7, "no_drain": 0.2}))
    table = found.tables[0]
    assert table.header == ("Clock", "CPU", "GPU")
    assert table.rows[1][1:] == ("17.0 ms (1.70×)", "1.70 ms (1.70×)")
    assert any("by the others the speedup is" in sentence for sentence in found.sentences)


def test_of_one_device_there_is_no_speedup_by_any_clock():
    found = sections.clock_section(exhibited.clock({"ours": 1.0, "no_drain": 0.9}, contenders=("cpu",)))
    assert not any("By Crossover's clock" in sentence for sentence in found.sentences)


def test_the_tutorials_own_clock_is_shown_with_ours_alone_and_its_shortcuts_in_words():
    shown = exhibited.clock({"ours": 1.0, "disc": 1.4, "no_drain": 0.1})
    found = sections.tutorial_clock_section(PRESETS["disc"], shown)
    assert "No synchronization" not in cells(found)
    assert "It is timed once." in cells(found)
    assert any("“As the disc tutorial” says 1.40 ms" in sentence for sentence in found.sentences)


def test_code_is_shown_as_it_ran_with_the_error_word_for_word():
    (listing,) = sections.moving_section(exhibited.moving()).listings
    assert (listing.code, listing.output) == ("print(here + there)", "RuntimeError: no")
    assert "meta" in listing.title
    assert "1 of them raise" in said([sections.moving_section(exhibited.moving())])


def test_the_first_step_says_whether_it_is_rounding():
    small, large = (said([sections.first_step_section(exhibited.first_step(apart))]) for apart in (3e-7, 0.1))
    assert "3.0 × 10⁻⁷" in small
    assert "that is rounding" in small
    assert "too much for rounding" in large


@pytest.mark.parametrize("make", [sections.clock_section, sections.moving_section, sections.first_step_section])
def test_where_an_exhibit_is_from_is_the_first_that_is_said(make):
    shown = {
        sections.clock_section: exhibited.clock({"ours": 1.0}),
        sections.moving_section: exhibited.moving(),
        sections.first_step_section: exhibited.first_step(),
    }[make]
    assert make(shown, note=MARK).sentences[0] == MARK
    assert MARK not in make(shown).sentences


@pytest.mark.parametrize("make", [sections.clock_section, sections.moving_section, sections.first_step_section])
def test_an_exhibit_of_another_lesson_is_refused_in_a_sentence(make):
    other = exhibited.clock({"ours": 1.0}) if make is not sections.clock_section else exhibited.moving()
    assert "shows no" in said([make(other)])


def test_the_loaders_share_and_what_a_device_can_gain_follow_the_rows():
    most, half = (said(sections.loader_sections(ways((share, 0.2)))) for share in (0.9, 0.5))
    assert "the loader is 90 % of it" in most
    assert "gain at most 1.11×" in most
    assert "the loader is 50 % of it" in half
    assert "gain at most 2.00×" in half
    assert "50.0× as fast" in most


def test_of_several_ways_to_use_the_cpu_one_is_looked_into_and_of_a_gpu_both_devices():
    alone = [section.title for section in sections.loader_sections(ways(contenders=("cpu@1", "cpu")))]
    assert alone == ["Where an epoch goes on the CPU", "The gain from the device alone"]
    both = [section.title for section in sections.loader_sections(ways(contenders=PAIR))]
    assert both[:2] == ["Where an epoch goes on the CPU", "Where an epoch goes on the GPU"]


def test_the_verdict_on_learning_follows_the_rows_and_the_margin():
    few = said(sections.equivalence_sections(seeds(2), baseline="cpu", challenger="cuda:0", margin=0.005))
    equal = said(sections.equivalence_sections(seeds(5), baseline="cpu", challenger="cuda:0", margin=0.005))
    worse = said(sections.equivalence_sections(seeds(5, worse=9), baseline="cpu", challenger="cuda:0", margin=0.005))
    mild = said(sections.equivalence_sections(seeds(5, worse=9), baseline="cpu", challenger="cuda:0", margin=0.1))
    assert "Too few seeds to tell" in few
    assert "Equivalent within ±0.50" in equal
    assert "Different by more than 0.50" in worse
    assert "Equivalent within ±10.00" in mild


def test_the_margin_is_said_to_have_been_fixed_before():
    found = sections.equivalence_sections(seeds(5), baseline="cpu", challenger="cuda:0", margin=0.02)
    (verdict,) = [section for section in found if section.title == "4. The verdict"]
    assert "margin of 2 percentage points was fixed before" in verdict.notes[0]


def test_classification_reports_of_both_devices_are_side_by_side():
    found = sections.equivalence_sections(seeds(2, worse=9), baseline="cpu", challenger="cuda:0", margin=0.005)
    table = found[-1].tables[0]
    assert table.header[1:3] == ("Precision, CPU", "Precision, GPU")
    assert any(row[1] != row[2] for row in table.rows)


def test_what_a_step_costs_whatever_its_batch_follows_the_rows():
    launched, computed = (
        said(sections.batch_size_sections(batches(1e-3, 1e-9))),
        said(sections.batch_size_sections(batches(1e-6, 1e-6))),
    )
    assert "100 % of the small step do not depend on the batch" in launched
    assert "100 % of the small step" not in computed
    assert len(sections.batch_size_sections(batches(1e-3, 1e-9))[0].figures) == 2
    assert len(sections.batch_size_sections(batches(1e-3, 1e-9, ("cpu@1", "cpu")))[0].figures) == 1


def test_devices_are_compared_by_the_verdict_of_their_run():
    (_, compared) = sections.batch_size_sections(batches(1e-3, 1e-9))
    base, other = batches(1e-3, 1e-9)[:2]
    verdict = speedup.speedup(base, other)
    assert f"{verdict.claim}, at a batch of {base.batch_size}." in compared.sentences
    assert verdict.short_claim in cells(compared)
    assert QUIET_NOTE not in compared.sentences


@pytest.mark.parametrize(
    ("make", "made"), [("batch_size_sections", batches(1e-3, 1e-9)), ("loader_sections", ways(contenders=PAIR))]
)
def test_on_a_loaded_machine_every_comparison_names_the_load(make, made):
    loaded = [rows.beside_programs(row) for row in made]
    first, *_, compared = getattr(sections, make)(loaded)
    *claims, last = compared.sentences
    assert claims
    assert all(claim.startswith(("With other programs using about half", "Inconclusive: with")) for claim in claims)
    assert last == QUIET_NOTE
    assert all(row[-1].endswith(", under load") for row in compared.tables[0].rows)
    assert any("about half of the processors" in note for note in first.notes)


def test_one_batch_size_is_not_enough():
    assert "Both batch sizes are needed." in said(sections.batch_size_sections(batches(1e-3, 1e-9)[:2]))


@pytest.mark.parametrize("name", ["disc", "signal", "fashion-cnn"])
def test_a_tutorial_shows_times_speedups_and_a_table(name):
    found = sections.tutorial_section(PRESETS[name], "class", measured(name), contenders=PAIR, origin="measured")
    assert [figure.title for figure in found.figures][1:] == [lesson_charts.SPEEDUP]
    assert found.tables[0].rows


def test_a_tutorial_without_a_pair_shows_what_was_published_and_says_so():
    found = sections.tutorial_section(
        PRESETS["disc"], "class", measured("disc"), contenders=("cpu", "mps"), origin="measured"
    )
    assert found.sentences[-1] == sections.NO_PAIR
    assert found.sentences[0].startswith("Published: ")
    assert tutorials.claim_sentences(PRESETS["disc"]) == found.sentences[:-1]


def test_why_a_gain_is_not_known_is_said_below_the_table_once_for_all_ways_it_is_true_of():
    section = sections.loader_sections(ways())[0]
    cells = [row[3] for row in section.tables[0].rows]
    assert "unknown" in cells
    assert max(map(len, cells)) <= len("not known")
    assert [note for note in section.notes if "is unknown for Preloaded on the device: " in note]


def test_devices_have_their_titles_in_the_tables_of_lessons():
    of_seeds = sections.equivalence_sections(seeds(3, worse=3), baseline="cpu", challenger="cuda:0", margin=0.005)
    table = next(table for section in of_seeds for table in section.tables if table.title.startswith("Test accuracy"))
    assert table.header == ("Seed", "CPU", "GPU", "Items that differ", "GPU, percentage points")
    assert {row[-1] for row in table.rows} == {"1.11 lower"}
    (launches, *_) = sections.batch_size_sections(batches(1e-3, 1e-9))
    assert {row[0] for row in launches.tables[0].rows} == {"CPU", "GPU"}


def test_no_difference_has_no_sign():
    (table,) = [
        table
        for section in sections.equivalence_sections(seeds(3), baseline="cpu", challenger="cuda:0", margin=0.005)
        for table in section.tables
        if table.title.startswith("Test accuracy")
    ]
    assert {row[-1] for row in table.rows} == {"alike"}
