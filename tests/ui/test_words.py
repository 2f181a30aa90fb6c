"""What a person reads on every page, in its main states, is words and not the identifiers of links and columns.

Links, commands and code show them, where one copies them.
"""

import re

import pytest

from core.progress import ContenderProgress, Progress
from core.question.experiment import Point
from core.question.fields import DATA_PATHS
from pages.shared.frame import navigation
from tests import rows, studies
from tests.ui import drawn
from tests.ui.conftest import CPU, GPU

COPIED = ("Code.", "TextArea.placeholder")
"""Texts that are there to be copied."""

CONTENDER = r"(?<![\w/.-])(?:cpu|cuda:\d)(?:@\d+)?(?:\+\w+)*(?![\w/.])"
WORDS = ("mlp", "cnn", "doubling-mlp", "fashion-mnist", "hidden_size", "batch_size", "learning_rate", "data_path")
WORDS += ("loader_workers", "budget_s", "channels_last", "with_transfer", "cold_start", "as_given", "out_of_memory")
WORDS += ("budget_spent", *(path for path in DATA_PATHS if "_" in path))
IDENTIFIER = re.compile(rf"{CONTENDER}|(?<![\w-])(?:{'|'.join(WORDS)})(?![\w-])")

LANES = {"cpu": 1e-3, "cpu+compiled10": 4e-4, "cpu+fused": 9e-4}
LANES_RUN = "a" * 12

OPEN = {"loss": "true", "reports": "true", "blocks": "true", "speedup": "true", "results": "true", "lacks": "true"}

VIEWS = {
    "front": ("pages/front/front.py", {}),
    "compare": (navigation.COMPARE, {}),
    "compare, a run": (navigation.COMPARE, {"run": rows.RUN_ID, **OPEN}),
    "compare, a run with lanes": (navigation.COMPARE, {"run": LANES_RUN, **OPEN}),
    "compare, a run under way": (navigation.COMPARE, {"job": "{job}"}),
    "crossover": (navigation.CROSSOVER, {"recorded_studies": "true"}),
    "crossover, a study": (navigation.CROSSOVER, {"study": "{study}", **OPEN}),
    "tutorials": (navigation.TUTORIALS, {"tutorial": "signal", "shown": "signal"}),
    "lessons": (navigation.LESSONS, {}),
    "cases": (navigation.CASES, {}),
    "cases, one": (navigation.CASES, {"case": "many-threads"}),
    "cases, one of a file": (navigation.CASES, {"case": "double-precision"}),
    "gallery": (navigation.GALLERY, {}),
    "gallery, published": (navigation.GALLERY, {"view": "Published"}),
    "gallery, trials": (navigation.GALLERY, {"view": "Trials"}),
    "gallery, machines": (navigation.GALLERY, {"view": "Machines"}),
    "gallery, a study": (navigation.GALLERY, {"study": "{study}", **OPEN}),
    "gallery, a run": (navigation.GALLERY, {"run": rows.RUN_ID, **OPEN}),
    "class": (navigation.CLASS, {}),
}


def read(app):
    """Every text that a person reads, tables and rows of charts included, without what is code or an address."""
    said = [one.text for one in drawn.texts(app) if not one.field.startswith(COPIED)]
    texts = (text.replace("\\", "").replace(":small[]", "") for text in (*said, *drawn.cells(app)))
    return [re.sub(r"```.*?```|`[^`]*`|https?://\S+|\S*\?\S*=\S*", "", text, flags=re.S) for text in texts]


@pytest.fixture
def full(world):
    """A machine with a GPU, on which a run, one with lanes and a study were measured, and one is under way."""
    world.has(CPU, GPU)
    world.keep(rows.run())
    world.keep(rows.run(LANES, run_id=LANES_RUN, point=Point(epochs=50)))
    named = {"study": studies.stored(world)}
    done = (ContenderProgress(contender="cpu", steps=950, total_steps=1_900, step_s=1e-3),)
    return named | {"job": world.run(progress=Progress(phase="training", contenders=done)).id}


@pytest.mark.parametrize("view", VIEWS)
def test_no_identifier_is_read_on_any_page(full, open_page, view):
    page, link = VIEWS[view]
    app = open_page(page, **{name: value.format(**full) for name, value in link.items()})
    found = [(text[:120], match[0]) for text in read(app) for match in IDENTIFIER.finditer(text)]
    assert found == []
