"""The version stands in one place, and the changes name it."""

import re
import tomllib

from core import __version__
from core.files.project import PROJECT


def test_the_project_reads_its_version_from_the_code():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version", "dependencies"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "core.__version__"}


def test_the_package_depends_on_what_the_requirements_say_and_on_nothing_else():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    assert "dependencies" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["dependencies"] == {"file": ["requirements.txt"]}


def test_the_newest_version_of_the_changes_is_this_one():
    released = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", (PROJECT / "CHANGELOG.md").read_text(), re.M)
    assert released[0] == __version__
