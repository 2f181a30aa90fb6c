"""Which files a Python file imports from its own folder, found by reading them, and the hash of all of them.

What is imported under a name that is made while it runs is not found by reading; nothing is run or imported here.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

from . import documents

DIGITS = 16
"""Hexadecimal digits of a hash."""

DEEPEST = 16
"""Packages within each other; a name that is longer than a path can be is nobody's."""


def find_source_files(file: Path) -> tuple[Path, ...]:
    """The file, and all that it imports from its folder, and what these import; sorted.

    A file that cannot be parsed imports nothing that can be found.

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
    """Hash of the names and contents of `of(file)`, 16 hexadecimal digits.

    Raises:
        OSError: one of them cannot be read.
    """
    digest = hashlib.sha256()
    for path in find_source_files(file):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(file.parent).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:DIGITS]


@functools.lru_cache(maxsize=1_024)
def _find_import_names(file: Path, folder: Path, _stamp: tuple[int, ...]) -> tuple[str, ...]:
    """Dotted names that a file imports, as they would be found from the folder; it is parsed once for each change."""
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
    """Files that importing a dotted name runs, those of its packages among them."""
    parts = name.split(".")[:DEEPEST] if name else []
    for length in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:length])
        candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
        yield from (path for path in candidates if path.is_file())
