"""Rules of docs/architecture.md that no linter knows."""

import ast
import subprocess
import sys

import pytest

from core.__main__ import COMMANDS
from core.files.project import PROJECT
from core.results import schema

READING_HALF = (
    "core.question.experiment",
    "core.question.presets",
    "core.answer.speedup",
    "core.answer.causes",
    "core.answer.accuracy",
    "core.answer.export.report",
    "core.results.store",
    "core.results.exchange",
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
    assert "torch" not in loaded_by("from core.answer.charts import gallery_charts, run_charts, study_charts")


STARTS = {
    "the command line's help": "from core.__main__ import parser; parser('--help')",
    "a run": "from core.__main__ import parser; parser('run')",
    "a sweep": "from core.__main__ import parser; parser('sweep')",
    "the app": "import streamlit_app, pages.explore.picture\nfrom pages.shared import server; server._import_pages()",
    "the measuring process": "import core.jobs.worker.__main__",
}
OF_OTHER_MACHINES = ("ray", "core.jobs.cluster_node", "core.remote.remote_store")


@pytest.mark.parametrize("start", STARTS)
def test_who_shares_no_store_loads_nothing_of_machines_that_do(start):
    assert not {name for name in loaded_by(STARTS[start]) if name.startswith(OF_OTHER_MACHINES)}


def test_core_does_not_depend_on_its_own_name():
    for path in (PROJECT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [name for name in names if name.partition(".")[0] == "core"], path


def test_no_page_lies_where_streamlit_would_run_it_without_the_shell():
    stray = [path.name for path in (PROJECT / "pages").glob("*.py") if path.name != "__init__.py"]
    assert stray == []


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_no_module_is_a_pile(folder):
    piles = {"utils", "helpers", "common", "misc", "manager"}
    assert not {path.stem for path in (PROJECT / folder).rglob("*.py")} & piles


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
    chokepoint = PROJECT / "pages" / "shared" / "permits.py"
    forbidden = {"submit", "request_stop", "kill", "stop", "claim"}
    for path in (PROJECT / "pages").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if path != chokepoint else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = ast.unparse(node.func.value)
            ours = owner in ("permits", "tasks") or (owner == "st" and node.func.attr == "stop")
            assert ours or node.func.attr not in forbidden, f"{path}: {ast.unparse(node)}"


DRAWN_BY = {"dataframe": ("elements.py",), "vega_lite_chart": ("elements.py",), "html": ("layout.py",)}
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
