"""Folders of classes and of students: made whole, removed whole, and what writers that died have left behind.

A folder is put together under another name and gets its own in one step. One that is to go gets a name that says so
first, in one step too: from then on nobody finds it, nothing can be written into it, and a removal that was interrupted
is finished by whoever looks next. Nothing else is ever removed here but drafts and temporary files that nobody can be
writing any more.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import StoreError, unwritable
from core.files import atomic

LEFT_S = 3600.0
"""Age of a draft beyond which its writer is dead; it takes a moment to write one."""

_GONE = ".gone-"
_DRAFT = re.compile(r"\.[0-9a-f]{16}-[0-9a-f]{12}")
_TEMPORARY = re.compile(r"\..+\.tmp")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise StoreError, which says in one sentence why the folder of classes cannot be written, where it cannot."""
    try:
        yield
    except OSError as error:
        raise StoreError(unwritable(f"The folder of classes {folder}", error)) from error


@contextlib.contextmanager
def placing(folder: Path) -> Iterator[Path]:
    """A draft of a folder, which gets its name at the end with all that is in it; raises OSError.

    Raises:
        FileExistsError: there is one of that name already.
    """
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(6)}")
    draft.mkdir()
    try:
        yield draft
        atomic.flush_folder(draft)
        try:
            draft.rename(folder)  # refused if it is there, as a folder with files in it is never replaced
        except OSError as error:
            if folder.exists():
                raise FileExistsError(folder) from error
            raise
        atomic.flush_folder(folder.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder with all in it, if it is there; raises OSError where it cannot be, and then it is as it was."""
    gone = folder.with_name(f"{_GONE}{folder.name}-{secrets.token_hex(6)}")
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    atomic.flush_folder(folder.parent)
    shutil.rmtree(gone, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Finish removals that were interrupted in a folder, and drop what writers that died left there."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in list(entries):
            if entry.name.startswith(".") and _is_left(entry):
                _drop(entry)


def ids_in(folder: Path) -> list[str]:
    """Folders that can be of classes or students; nothing else that lies there is touched."""
    with contextlib.suppress(OSError):
        return [path.name for path in folder.iterdir() if is_id(path.name)]
    return []


def is_id(text: str) -> bool:
    """Whether a text is of the form of the name of such a folder; nothing else is ever looked up."""
    return len(text) == 16 and all(letter in "0123456789abcdef" for letter in text)


def sha(text: str) -> str:
    """Hash of a text, of which the names of folders are beginnings; 64 hexadecimal digits."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _is_left(entry: "os.DirEntry[str]") -> bool:
    if entry.name.startswith(_GONE):
        return True
    if not _DRAFT.fullmatch(entry.name) and not _TEMPORARY.fullmatch(entry.name):
        return False
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > LEFT_S
    except OSError:  # somebody else was quicker
        return False


def _drop(entry: "os.DirEntry[str]") -> None:
    with contextlib.suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink()
