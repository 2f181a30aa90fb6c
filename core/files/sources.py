"""Files that a Python file imports from its folder, found by parsing, their hash, and files of data sets.

Imports with a name that is computed at run time are not found; nothing is run or imported here.

For data sets that torchvision downloads, this module locates their files and checks that they exist.
"""

import ast
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import documents
from .project import DATA

DIGITS = 16
"""Number of hexadecimal digits of a hash."""

DEEPEST = 16
"""Maximum depth of nested packages."""


def find_source_files(file: Path) -> tuple[Path, ...]:
    """Return the file and all files that it imports from its folder, directly or indirectly, sorted.

    Imports of a file that cannot be parsed are not found.

    Raises:
        OSError: the file itself cannot be read.
    """
    folder, found, waiting = file.parent, {file}, [file]
    file.read_bytes()
    while waiting:
        current = waiting.pop()
        names = _find_import_names(current, folder, documents.stamp(current))
        new = {path for name in names for path in _find_module_files(folder, name)} - found
        found |= new
        waiting += new
    return tuple(sorted(found))


def hash_sources(file: Path) -> str:
    """Return the hash of the names and contents of `find_source_files(file)`, 16 hexadecimal digits.

    Raises:
        OSError: one of the files cannot be read.
    """
    digest = hashlib.sha256()
    for path in find_source_files(file):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(file.parent).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:DIGITS]


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """Definitions at the top level of a Python file, found by parsing.

    Attributes:
        names: names of functions, classes, variables and imports; None if they are unknown before it runs.
        functions: functions that are defined in the file itself.
    """

    names: frozenset[str] | None
    functions: Mapping[str, ast.arguments]

    def has(self, name: str) -> bool:
        """Return whether the file may define a name."""
        return self.names is None or name in self.names

    def takes(self, name: str, count: int) -> bool:
        """Return whether a function may be called with this number of positional arguments."""
        if (told := self.functions.get(name)) is None:
            return True
        given = len(told.posonlyargs) + len(told.args)
        required = given - len(told.defaults)
        return required <= count <= (count if told.vararg else given) and all(told.kw_defaults)


def read_definitions(file: Path) -> Definitions:
    """Return the definitions of a Python file.

    Raises:
        OSError: the file cannot be read.
        SyntaxError: the file is not valid Python.
    """
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (ValueError, RecursionError) as error:
        raise SyntaxError(str(error)) from error
    names, functions, is_open = set[str](), dict[str, ast.arguments](), False
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name, decorator_list=[], args=told):
                names.add(name)
                functions[name] = told
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                is_open = is_open or any(alias.name == "*" for alias in imported)
                names |= {alias.asname or alias.name.partition(".")[0] for alias in imported}
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Call(func=ast.Name(id="globals" | "exec" | "vars" | "setattr")):
                is_open = True
            case _:
                waiting += ast.iter_child_nodes(node)
                continue
        if isinstance(node, ast.Call):
            waiting += ast.iter_child_nodes(node)
    return Definitions(names=None if is_open else frozenset(names), functions=functions)


@functools.lru_cache(maxsize=1_024)
def _find_import_names(file: Path, folder: Path, _stamp: tuple[int, ...]) -> tuple[str, ...]:
    """Return the dotted names that a file imports, relative to the folder; cached until the file changes."""
    return tuple(_names(file, folder))


def _names(file: Path, folder: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    package = file.relative_to(folder).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _find_module_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield files that importing a dotted name runs, including those of its packages."""
    parts = name.split(".")[:DEEPEST] if name else []
    for length in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:length])
        candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
        yield from (path for path in candidates if path.is_file())


DATASETS_VARIABLE = "CROSSOVER_DATASETS"
"""Environment variable that names another folder of downloaded data sets."""

LOADERS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
"""Torchvision's name of the loader, and of the folder of the files, by data set."""

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""Files of each of these data sets."""


def folder() -> Path:
    """Return the folder in which torchvision stores its files."""
    return Path(os.environ.get(DATASETS_VARIABLE) or DATA / "datasets")


def locate_dataset(dataset: str, within: Path | None = None) -> Path:
    """Return the folder of one data set's files, below the common folder unless another is given."""
    return (within or folder()) / LOADERS[dataset] / "raw"


def complete(dataset: str) -> bool:
    """Return whether all files of a data set exist; readers verify their checksums."""
    return all((locate_dataset(dataset) / name).is_file() for name in FILES)
