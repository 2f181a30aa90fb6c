"""What surrounds the code says what is true: versions, the form, the notebook, the container, the jobs of CI."""

import ast
import json
import re
import tomllib

import yaml

from core import __version__
from core.__main__ import COMMANDS
from core.answer import contribution
from core.files.project import PROJECT

FORM = PROJECT / ".github" / "ISSUE_TEMPLATE" / "contribution.yml"
NOTEBOOK = PROJECT / "examples" / "contribute.ipynb"
DOCKERFILE = PROJECT / "deploy" / "Dockerfile"
WORKFLOW = PROJECT / ".github" / "workflows" / "tests.yml"


def test_the_citation_names_this_version_and_the_same_licence():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert citation["license"] == tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["license"]


def test_the_form_that_the_command_names_is_there_and_asks_for_the_file_and_the_machine():
    assert contribution.FORM.endswith(f"template={FORM.name}")
    fields = {field["id"]: field for field in yaml.safe_load(FORM.read_text())["body"] if "id" in field}
    assert {"file", "machine", "terms"} == set(fields)
    assert fields["file"]["validations"]["required"]
    assert fields["terms"]["attributes"]["options"][0]["required"]


def test_every_cell_of_the_notebook_is_python_and_its_commands_are_there():
    notebook = json.loads(NOTEBOOK.read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert notebook["metadata"]["accelerator"] == "GPU"
    for cell in cells:
        ast.parse(re.sub(r"(?m)^[!%].*$", "pass", cell))
    commands = re.findall(r"(?m)^!crossover (\w+)", "\n".join(cells))
    assert "contribute" in commands
    assert set(commands) <= set(COMMANDS)
    assert all(not cell.get("outputs") for cell in notebook["cells"])


def test_the_container_runs_without_rights_and_says_whether_it_is_well():
    lines = DOCKERFILE.read_text().splitlines()
    last = max(place for place, line in enumerate(lines) if line.startswith("FROM "))
    words = [line.partition(" ")[0] for line in lines[last:]]
    assert "HEALTHCHECK" in words
    assert words.index("USER") < words.index("CMD")
    assert "USER root" not in lines
    assert "_stcore/health" in DOCKERFILE.read_text()


def test_unit_tests_run_on_three_systems_and_every_python_that_the_package_allows():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    matrix = jobs["unit"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "windows", "macos"]
    needed = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert needed == f">={matrix['python'][0]}"
    assert "tests/integration/test_installed.py" in str(jobs["installed"])
