"""Custom training scripts that this server offers: it reads the files that it was started with, and never runs them.

`streamlit run streamlit_app.py -- --training my_training.py` or `CROSSOVER_TRAINING` names a file, a file with a
function (`my_training.py:build`), or a folder of such files. A visitor of a page chooses a script by its name. The path
of a file comes from the command that started the server, never from a link. `pages.shared.permits` decides which
visitors may choose.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.files import sources
from core.files.documents import stamp
from core.question import custom, published
from core.question.experiment import Point
from core.results.schema import Trial
from pages.shared.cache import cache_answers

TRAINING_VARIABLE = "CROSSOVER_TRAINING"
"""Environment variable that names a custom script, or a folder of them, for the pages to offer."""

TRAINING_OPTION = "--training"
START_COMMAND = " ".join(("streamlit", "run", "streamlit_app.py", "--", TRAINING_OPTION, "my_training.py"))
"""The command that starts a server with a custom script."""

BUILD_PARAMETERS = ["size", "device"]
"""First parameters of a function that builds a training under another name than the default."""

MAX_FILES = 50
"""Largest number of files of a folder that are offered, the first by name."""


@dataclass(frozen=True, kw_only=True)
class CustomFile:
    """A custom script that a visitor can choose.

    Attributes:
        path: the file.
        function: the function that builds the training.
        alone: whether the file offers no other function.
    """

    path: Path
    function: str
    alone: bool = True

    @property
    def name(self) -> str:
        """The name of the training in rows and links: `my_training.py:build`."""
        return f"{self.path.name}:{self.function}"

    @property
    def title(self) -> str:
        """The readable name of the training: its file, and the function if the file offers several."""
        return self.path.name if self.alone else f"{self.path.name}, {self.function}"

    @property
    def source_hash(self) -> str:
        """Hash of the current source; empty if it cannot be read."""
        try:
            return sources.hash_sources(self.path)
        except OSError:
            return ""

    def fields(self) -> dict[str, str]:
        """Return the fields that a `Point` of the script needs in addition to its size."""
        return {"training": self.name, "source_hash": self.source_hash}


def list_custom_files() -> Mapping[str, CustomFile]:
    """Return every training that the server was started with, by name; the first counts if a name occurs twice."""
    found: dict[str, CustomFile] = {}
    for text in _read_start_options():
        for file in _find_files(text):
            found.setdefault(file.name, file)
    return found


def list_shipped_files() -> Mapping[str, CustomFile]:
    """Return the scripts of public cases that the app includes: their page runs them, and no control offers them."""
    return {file.name: file for file in _find_files(str(published.CASES_FOLDER))}


def find_custom_file(training: Point | Trial) -> CustomFile | None:
    """Return the file of a row or a question, offered or included in the app; None if it is neither."""
    named = [
        files[training.training] for files in (list_custom_files(), list_shipped_files()) if training.training in files
    ]
    return next((file for file in named if file.source_hash == training.source_hash), named[0] if named else None)


def describe_file_state(training: Point | Trial) -> str:
    """Describe how a script's file changed since a row or a question of it; empty if it did not."""
    file = find_custom_file(training)
    if file is None:
        return f"{training.training} is not among the files that this server was started with."
    now = file.source_hash
    if now == training.source_hash:
        return ""
    return f"{file.path.name} has changed since: it was source {training.source_hash[:6]}, it is {now[:6] or 'gone'}."


def _read_start_options() -> Iterator[str]:
    """Return the scripts that the server was started with: options behind `--`, and the environment."""
    given = iter(sys.argv[1:])
    for word in given:
        if word == TRAINING_OPTION:
            yield next(given, "")
        elif word.startswith(f"{TRAINING_OPTION}="):
            yield word.partition("=")[2]
    yield os.environ.get(TRAINING_VARIABLE, "")


def _find_files(text: str) -> list[CustomFile]:
    """Return the trainings of a file, of a file with a function, or of a folder."""
    before, _, after = text.rpartition(":")
    if before and after.isidentifier():
        return _make_custom_files(Path(before), (after,))
    path = Path(text)
    if text and path.is_dir():
        files = [file for file in sorted(path.glob("*.py")) if _find_functions(file, stamp(file))]
        return [
            found
            for file in files[:MAX_FILES]
            for found in _make_custom_files(file, _find_functions(file, stamp(file)))
        ]
    return _make_custom_files(path, _find_functions(path, stamp(path)) or (custom.DEFAULT_FUNCTION,)) if text else []


def _make_custom_files(path: Path, functions: tuple[str, ...]) -> list[CustomFile]:
    path = path.absolute()
    named = [CustomFile(path=path, function=function, alone=len(functions) == 1) for function in functions]
    return [file for file in named if path.is_file() and custom.NAME.fullmatch(file.name)]


@cache_answers(1_024)
def _find_functions(path: Path, file_stamp: tuple[int, ...]) -> tuple[str, ...]:
    """Return the functions of a file that build a training, by name or parameters; none if it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(name for entry in tree.body for name in _find_bound_names(entry)))


def _find_bound_names(entry: ast.stmt) -> list[str]:
    """Return the names of functions that a statement of a file defines and that build a training."""
    default = custom.DEFAULT_FUNCTION
    match entry:
        case ast.FunctionDef(name=name, args=args):
            takes = [each.arg for each in args.args[:2]] == BUILD_PARAMETERS and not name.startswith("_")
            return [name] if takes or name == default else []
        case ast.Assign(targets=[ast.Name(id=name)]) if name == default:
            return [name]
        case ast.ImportFrom(names=names):
            return [default for each in names if (each.asname or each.name) == default]
    return []
