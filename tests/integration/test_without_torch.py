"""Where torch is not installed: the app starts, and the Gallery works with the rows that ship.

A process whose Python finds neither torch nor torchvision, nor anything that says they were installed, and whose own
child processes do not either.
"""

import json
import os
import subprocess
import sys

import pytest

from core.files.project import PROJECT
from core.results.store import GALLERY, Store
from pages.shared import layout

ABSENT = """
import importlib.metadata, sys

NAMES = ("torch", "torchvision")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NAMES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

found = importlib.metadata.Distribution.from_name.__func__

def from_name(cls, name):
    if name in NAMES:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(cls, name)

sys.meta_path.insert(0, Absent())
importlib.metadata.Distribution.from_name = classmethod(from_name)
"""
"""What Python runs first in that process."""

SHIPPED = """
import json
from core.answer.gallery import overview
from core.results.store import GALLERY, Store
table = overview.load_overview([(Store(GALLERY), "gallery")]).table
print(json.dumps([overview.find_study_lines(table)[0].id, table["run_id"][0].as_py()]))
"""

VISIT = """
import json, sys
from streamlit.testing.v1 import AppTest

def visit(page, link):
    app = AppTest.from_file("streamlit_app.py", default_timeout=300)
    for name, value in link.items():
        app.query_params[name] = value
    app.switch_page(page)
    app.run()
    kinds = ("title", "header", "subheader", "caption", "markdown", "info", "warning", "error")
    said = [str(element.value) for kind in kinds for element in getattr(app, kind)]
    return {
        "raised": [each.message for each in app.exception],
        "said": "\\n".join(said).replace("\\\\", ""),
        "charts": len(app.get("vega_lite_chart")),
        "tables": [len(table.value) for table in app.dataframe],
    }

print("ANSWER" + json.dumps([visit(*asked) for asked in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs code in that process, with folders of its own, and returns what it printed."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(ABSENT)
    folders = {"CROSSOVER_JOBS": folder / "jobs", "CROSSOVER_RESULTS": folder / "results"}
    folders |= {"CROSSOVER_LOCK": folder / "lock", "PYTHONPATH": folder}

    def run(code: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=PROJECT,
            env=os.environ | {name: str(path) for name, path in folders.items()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def visits(bare):
    """What pages say there: the Gallery's lists, a study, a run, and pages that measure."""
    gallery = "pages/gallery/gallery.py"
    study_id, run_id = json.loads(bare(SHIPPED))
    links = {
        "studies": {},
        "trials": {"view": "Trials"},
        "machines": {"view": "Machines"},
        "study": {"study": study_id},
        "run": {"run": run_id},
    }
    others = {"explore": (layout.EXPLORE, {}), "devices": ("pages/devices/devices.py", {})}
    asked = {name: (gallery, link) for name, link in links.items()} | others
    printed = bare(VISIT, json.dumps(list(asked.values())))
    return dict(zip(asked, json.loads(printed.partition("ANSWER")[2]), strict=True))


def test_torch_is_really_absent(bare):
    code = "import importlib.util, importlib.metadata\ntry:\n import torch\nexcept ModuleNotFoundError: print('absent')"
    assert bare(code).strip() == "absent"


def test_nothing_that_a_page_imports_needs_it(bare):
    modules = sorted((PROJECT / "pages").rglob("*.py"))
    places = [path.relative_to(PROJECT) for path in modules if not path.name.startswith("__")]
    names = [".".join(place.with_suffix("").parts) for place in places if place.as_posix() not in layout.FILES]
    printed = bare(
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\nprint(len(sys.modules))"
    )
    assert int(printed) > len(names)


@pytest.mark.parametrize("name", ["studies", "trials", "machines", "study", "run"])
def test_every_view_of_the_gallery_works(visits, name):
    assert visits[name]["raised"] == []
    assert "Gallery" in visits[name]["said"]


@pytest.mark.parametrize("name", ["explore", "devices"])
def test_pages_that_need_a_measuring_process_do_not_raise(visits, name):
    assert visits[name]["raised"] == []
    assert "PyTorch is not installed here, so nothing can run" in visits[name]["said"]


def test_its_lists_show_the_rows_that_ship(visits):
    assert visits["studies"]["charts"] > 0
    assert "is faster than" in visits["studies"]["said"]
    assert max(visits["trials"]["tables"]) > 20
    assert visits["machines"]["tables"] == [len({trial.machine_id for trial in Store(GALLERY).trials()})]


def test_a_study_opens_with_its_charts_and_the_command_that_repeats_it(visits):
    assert visits["study"]["charts"] >= 3
    assert "Export" in visits["study"]["said"]


def test_a_run_opens_with_its_verdict(visits):
    assert "Run" in visits["run"]["said"]
    assert visits["run"]["charts"] > 0
