"""Folders of this project and of its results, the only module that derives them from its own path.

In a clone the package is the folder `core`, and everything else is next to it. A wheel contains everything in one
package, `crossover` (setup.py), and results go to the user's data folder.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
START_FOLDER = PACKAGE.parent
"""The working directory of every Crossover process, from which `python -m` finds the package."""

IS_CLONE = PACKAGE.name == "core"
PROJECT = PACKAGE.parent if IS_CLONE else PACKAGE
"""The folder of `streamlit_app.py` and of the shipped data."""

GIT_TIMEOUT_S = 5.0
"""Timeout of git in seconds; it normally answers in milliseconds."""


def find_user_data_folder(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """Return the folder for a user's data on this system; on all systems an absolute `XDG_DATA_HOME` has priority."""
    named = environment.get("XDG_DATA_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "crossover"
    if system == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "crossover"
    if system == "darwin":
        return Path.home() / "Library" / "Application Support" / "crossover"
    return Path.home() / ".local" / "share" / "crossover"


DATA = PROJECT / "data" if IS_CLONE else find_user_data_folder()
"""Folder of results, jobs, classes and caches, each in a subfolder unless the environment names another folder."""

SHIPPED_DATA = PROJECT / "data"
"""Folder of the gallery and the published studies; the app never writes to it."""

SETTINGS_FOLDER = PROJECT if IS_CLONE else DATA
"""The folder of the host's settings file."""


class Origin(NamedTuple):
    """Version of this code.

    Attributes:
        commit: commit of the checkout, with `+` if tracked files were changed; empty if unknown.
        address: address of the repository from which it was cloned; empty if there is none.
    """

    commit: str = ""
    address: str = ""


BUILD_FILE = PACKAGE / "build.json"
"""The `Origin` of a wheel, written when it is built; a copy of a clone without `.git` may have one too."""


@functools.cache
def find_origin() -> Origin:
    """Return the commit and the address of this code, from the checkout or from the build file."""
    if IS_CLONE and (checkout := read_checkout(PROJECT)).commit:
        return checkout
    try:
        built = json.loads(BUILD_FILE.read_text(encoding="utf-8"))
        return Origin(commit=str(built["commit"]), address=str(built["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Origin()


def read_checkout(folder: Path) -> Origin:
    """Return the commit and the address of a checkout; both are empty if the folder is not a checkout."""
    if not (folder / ".git").exists():  # git would answer for a checkout around this folder
        return Origin()
    describe = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+")
    return Origin(commit=_ask_git(folder, *describe), address=_ask_git(folder, "remote", "get-url", "origin"))


def _ask_git(folder: Path, *words: str) -> str:
    """Return the output of git; empty if git is missing or fails."""
    command = ("git", "--no-optional-locks", "-C", str(folder), *words)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def locate_module(package: str, name: str) -> str:
    """Return the dotted name of a module of this package with which `python -m` finds it from `START_FOLDER`.

    Args:
        package: `__package__` of the caller, whose first part differs in the measuring process.
        name: name of the module in that package.
    """
    return ".".join((PACKAGE.name, *package.split(".")[1:], name))
