"""Rules of docs/architecture.md that no linter knows."""

import ast
import subprocess
import sys

import pytest

from core.__main__ import COMMANDS
from core.files.project import PROJECT
from core.results import schema
from pages.shared.frame import navigation

PAGES = [PROJECT / page for page in navigation.FILES]
READING_HALF = (
    "core.question.experiment",
    "core.question.presets",
    "core.answer.run.speedup",
    "core.answer.run.causes",
    "core.answer.run.learned",
    "core.answer.export.run_report",
    "core.results.store",
    "core.results.intake.exchange",
    "core.jobs.queue",
    "core.jobs.client",
    *(f"core.commands.{module}" for module in COMMANDS.values()),
)


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_reading_needs_neither_torch_nor_a_user_interface_nor_pandas():
    loaded = loaded_by("\n".join(f"import {name}" for name in READING_HALF))
    assert not loaded & {"torch", "torchvision", "streamlit", "altair", "pandas", "sklearn"}


def test_charts_need_no_torch():
    assert "torch" not in loaded_by("from core.answer.charts import gallery, runs, speedups, studies")


STARTS = {
    "the command line's help": "from core.__main__ import parser; parser('--help')",
    "a run": "from core.__main__ import parser; parser('run')",
    "a sweep": "from core.__main__ import parser; parser('sweep')",
    "the app": "import streamlit_app, pages.front.choice\n"
    "from pages.shared.frame import server; server._import(server.CHART_MODULES)",
    "the measuring process": "import core.jobs.worker.__main__",
}
OF_OTHER_MACHINES = (
    "core.files.shared",
    "core.jobs.cluster",
    "core.results.finding.sharing",
    "core.answer.gallery.older",
)
PLAIN_DATA = {"core.jobs.cluster_machine"}
"""What every job may say of machines that measure it."""


@pytest.mark.parametrize("start", STARTS)
def test_who_shares_no_store_loads_nothing_of_machines_that_do(start):
    assert not {name for name in loaded_by(STARTS[start]) if name.startswith(OF_OTHER_MACHINES)} - PLAIN_DATA


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_a_page_is_thin(page):
    assert len(page.read_text().splitlines()) <= 100


def test_no_page_lies_where_streamlit_would_run_it_without_the_shell():
    stray = [path.name for path in (PROJECT / "pages").glob("*.py") if path.name != "__init__.py"]
    assert stray == []


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_no_module_is_a_pile(folder):
    piles = {"utils", "helpers", "common", "misc", "manager"}
    assert not {path.stem for path in (PROJECT / folder).rglob("*.py")} & piles


MOST_LINES, MOST_ENTRIES = 350, 14
LONGER = {"core/jobs/cluster.py": 750}
MORE_ENTRIES = {"core/answer/charts": 15, "core/jobs": 18}
"""Those beyond the limits, with how far they may be."""


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_a_module_can_be_read_in_one_go(folder):
    for path in (PROJECT / folder).rglob("*.py"):
        name = path.relative_to(PROJECT).as_posix()
        assert len(path.read_text().splitlines()) <= LONGER.get(name, MOST_LINES), name


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_a_room_has_few_entries(folder):
    for room in {path.parent for path in (PROJECT / folder).rglob("*.py")}:
        name = room.relative_to(PROJECT).as_posix()
        entries = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        rooms = [path for path in room.iterdir() if (path / "__init__.py").exists()]
        assert len(entries) + len(rooms) <= MORE_ENTRIES.get(name, MOST_ENTRIES), name


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_names_say_what_they_are_and_not_that_they_are_got_or_managed(folder):
    for path in (PROJECT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert not node.name.lstrip("_").startswith("get_"), f"{path}: {node.name}"
                assert not node.name.endswith("Manager"), f"{path}: {node.name}"


def test_the_column_dictionary_in_the_data_folder_is_the_schemas():
    assert schema.dictionary() in (PROJECT / "data" / "README.md").read_text()


def test_requirements_are_bounded():
    lines = [line for line in (PROJECT / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    assert len(lines) >= 7
    assert all(">=" in line and "<" in line for line in lines)


def test_ci_runs_the_readmes_test_command():
    command = [line for line in (PROJECT / "README.md").read_text().splitlines() if line.endswith("-m tests")]
    assert len(command) == 1
    assert "grep -m 1 -- '-m tests$' README.md" in (PROJECT / ".ci" / "run").read_text()


def test_nothing_is_queued_or_ended_by_a_page_but_through_its_permit():
    chokepoint = PROJECT / "pages" / "shared" / "frame" / "permits.py"
    forbidden = {"submit", "request_stop", "kill", "stop", "claim"}
    for path in (PROJECT / "pages").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if path != chokepoint else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = ast.unparse(node.func.value)
            ours = owner in ("permits", "tasks") or (owner == "st" and node.func.attr == "stop")
            assert ours or node.func.attr not in forbidden, f"{path}: {ast.unparse(node)}"


STYLED = ("guide.py", "look.py", "layout.py", "history.py")
DRAWN_BY = {"dataframe": ("tables.py",), "vega_lite_chart": ("charts.py",), "html": STYLED}
"""What a page draws through one function alone, and the files that have it; styles and scripts, through the frame."""

NEVER_DRAWN = {
    "table",
    "data_editor",
    "write",
    "json",
    "latex",
    "altair_chart",
    "line_chart",
    "bar_chart",
    "graphviz_chart",
}


def test_tables_and_charts_are_drawn_where_their_texts_are_cleaned():
    for path in (PROJECT / "pages").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.keyword) or node.arg != "unsafe_allow_html", path
            if not isinstance(node, ast.Attribute):
                continue
            owner = ast.unparse(node.value)
            assert node.attr not in DRAWN_BY or path.name in DRAWN_BY[node.attr] or owner == "lesson_report", (
                f"{path}: {node.attr}"
            )
            assert not (owner == "st" and node.attr in NEVER_DRAWN), f"{path}: st.{node.attr}"


def test_nobody_else_has_a_way_of_their_own_to_escape_a_text():
    for path in (*(PROJECT / "core").rglob("*.py"), *(PROJECT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if path.name != "text.py" else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {"html", "shlex.quote", "escape"} & set(names), f"{path}: {names}"
