"""A host that installs requirements-gallery.txt alone shows every page, takes files and draws charts as files."""

import os
import re
import subprocess
import sys

import pytest

from core.files.project import PROJECT
from pages.shared import layout

REQUIREMENTS = ("requirements.txt", "requirements-gallery.txt")

VISIT = r'''
import importlib.abc, importlib.metadata, json, re, sys
from packaging.requirements import Requirement

def needed(names):
    """Distributions that these bring, by their normalised names."""
    found, left = set(), list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        parsed = (Requirement(text) for text in requires)
        left += [each.name for each in parsed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found

lines = open("requirements-gallery.txt").read().splitlines()
allowed = needed(Requirement(line).name for line in lines if line and not line.startswith("#"))
brought = importlib.metadata.packages_distributions()
known = lambda owners: any(re.sub(r"[-_.]+", "-", owner).lower() in allowed for owner in owners)
forbidden = {module for module, owners in brought.items() if not known(owners)} - {"tests"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in forbidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] in forbidden]:
    del sys.modules[name]
sys.meta_path.insert(0, Absent())
assert "torch" in forbidden and "tqdm" in forbidden and "streamlit" not in forbidden

from streamlit.testing.v1 import AppTest

for page in sys.argv[1:]:
    app = AppTest.from_file("streamlit_app.py", default_timeout=300)
    app.switch_page(page)
    app.run()
    assert not app.exception, (page, app.exception)
    print(page, len(app.title), "charts", len(app.get("vega_lite_chart")))

import core.answer.export.rendering, core.answer.export.run_files, core.results.quarantine

'''


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the pages showed where nothing else can be imported; sys.executable cannot start a worker there."""
    folder = tmp_path_factory.mktemp("host")
    policy = folder / "crossover.toml"
    policy.write_text('who_may_run = "nobody"\n', encoding="utf-8")
    own = {"CROSSOVER_JOBS": folder / "jobs", "CROSSOVER_RESULTS": folder / "results", "CROSSOVER_POLICY": policy}

    done = subprocess.run(
        [sys.executable, "-c", VISIT, *layout.FILES],
        cwd=PROJECT,
        env=os.environ | {name: str(value) for name, value in own.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


@pytest.mark.parametrize("page", ["gallery", "explore", "devices", "tutorials", "lessons"])
def test_a_page_is_drawn_without_what_measures(visited, page):
    assert re.search(rf"/{page}.py 1 ", visited)


def test_the_gallery_has_its_charts(visited):
    (charts,) = re.findall(r"gallery.py 1 charts (\d+)", visited)
    assert int(charts) >= 1


def test_both_files_of_requirements_name_the_same_versions():
    every, some = (set((PROJECT / name).read_text().splitlines()) for name in REQUIREMENTS)
    assert {line for line in some - every if not line.startswith("#")} == set()
