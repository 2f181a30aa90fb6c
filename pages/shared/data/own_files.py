"""The trainings of one's own that this server offers: of files that it was started with, which are read and never run.

`streamlit run streamlit_app.py -- --training my_training.py` or `CROSSOVER_TRAINING` names a file, one with a function
(`my_training.py:build`), or a folder of such files. Who looks at a page can choose among their names; where a file lies
comes from whoever started the server, never from a link. Who may choose at all is decided in
`pages.shared.frame.permits`.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.files import sources
from core.files.documents import stamp
from core.question import own
from core.question.experiment import Point
from core.question.published import cases
from core.results.schema import Trial
from pages.shared.cache import cache_answers

TRAINING_VARIABLE = "CROSSOVER_TRAINING"
"""Environment variable that names a training of one's own, or a folder of them, for the pages to offer."""

OPTION = "--training"
COMMAND = " ".join(("streamlit", "run", "streamlit_app.py", "--", OPTION, "my_training.py"))
"""How a server is started that offers one."""

PARAMETERS = ["size", "device"]
"""By which a function is known that builds a training, if it is not called so."""

MOST_FILES = 50
"""Files of a folder that are offered, the first by name."""


@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """A training of one's own that may be chosen.

    Attributes:
        path: its file.
        function: that builds it.
        alone: whether it is the only one that its file offers.
    """

    path: Path
    function: str
    alone: bool = True

    @property
    def name(self) -> str:
        """The training as rows and links name it: `my_training.py:build`."""
        return f"{self.path.name}:{self.function}"

    @property
    def title(self) -> str:
        """The training as people read it: its file, with the function where the file offers several."""
        return self.path.name if self.alone else f"{self.path.name}, {self.function}"

    @property
    def source_hash(self) -> str:
        """Hash of the source as it is now; empty where it cannot be read."""
        try:
            return sources.hashed(self.path)
        except OSError:
            return ""

    def fields(self) -> dict[str, str]:
        """What a `Point` of the training needs beside its size."""
        return {"training": self.name, "source_hash": self.source_hash}


def offered() -> Mapping[str, OwnFile]:
    """Every training that the server was started with, by its name; of two of one name the first."""
    found: dict[str, OwnFile] = {}
    for text in _named():
        for file in _files(text):
            found.setdefault(file.name, file)
    return found


def shipped() -> Mapping[str, OwnFile]:
    """The trainings of public cases, which came with the app: their page runs them, and no control offers them."""
    return {file.name: file for file in _files(str(cases.FOLDER))}


def of(training: Point | Trial) -> OwnFile | None:
    """The file of a row or a question, as it was offered or came with the app; None if neither."""
    named = [files[training.training] for files in (offered(), shipped()) if training.training in files]
    return next((file for file in named if file.source_hash == training.source_hash), named[0] if named else None)


def state_of(training: Point | Trial) -> str:
    """What became of a training's file since a row or a question of it, in a sentence; empty if nothing did."""
    file = of(training)
    if file is None:
        return f"{training.training} is not among the files that this server was started with."
    now = file.source_hash
    if now == training.source_hash:
        return ""
    return f"{file.path.name} has changed since: it was source {training.source_hash[:6]}, it is {now[:6] or 'gone'}."


def _named() -> Iterator[str]:
    """What the starter of this server wrote, as options behind `--` and in the environment."""
    given = iter(sys.argv[1:])
    for word in given:
        if word == OPTION:
            yield next(given, "")
        elif word.startswith(f"{OPTION}="):
            yield word.partition("=")[2]
    yield os.environ.get(TRAINING_VARIABLE, "")


def _files(text: str) -> list[OwnFile]:
    """The trainings that a file, one with a function, or a folder has."""
    before, _, after = text.rpartition(":")
    if before and after.isidentifier():
        return _of(Path(before), (after,))
    path = Path(text)
    if text and path.is_dir():
        files = [file for file in sorted(path.glob("*.py")) if _functions(file, stamp(file))]
        return [found for file in files[:MOST_FILES] for found in _of(file, _functions(file, stamp(file)))]
    return _of(path, _functions(path, stamp(path)) or (own.DEFAULT_FUNCTION,)) if text else []


def _of(path: Path, functions: tuple[str, ...]) -> list[OwnFile]:
    path = path.absolute()
    named = [OwnFile(path=path, function=function, alone=len(functions) == 1) for function in functions]
    return [file for file in named if path.is_file() and own.NAME.fullmatch(file.name)]


@cache_answers(1_024)
def _functions(path: Path, file_stamp: tuple[int, ...]) -> tuple[str, ...]:
    """Functions of a file that build a training, by their names or their parameters; none where it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(name for entry in tree.body for name in _bound(entry)))


def _bound(entry: ast.stmt) -> list[str]:
    """Names of functions that a statement of a file makes which build a training."""
    default = own.DEFAULT_FUNCTION
    match entry:
        case ast.FunctionDef(name=name, args=args):
            takes = [each.arg for each in args.args[:2]] == PARAMETERS and not name.startswith("_")
            return [name] if takes or name == default else []
        case ast.Assign(targets=[ast.Name(id=name)]) if name == default:
            return [name]
        case ast.ImportFrom(names=names):
            return [default for each in names if (each.asname or each.name) == default]
    return []
