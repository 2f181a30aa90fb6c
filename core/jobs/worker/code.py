"""The code that a process began with: a worker whose code was changed makes room for a fresh one."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from core.files.project import PROJECT

CODE = PROJECT / "core"


@dataclass(frozen=True)
class Code:
    """The code as it was when this process began; rows name the commit that measured them.

    Attributes:
        folder: where it is.
        newest_ns: when a file of it was changed last.
    """

    folder: Path
    newest_ns: int

    @classmethod
    def scan(cls, folder: Path = CODE) -> Self:
        """The code as it is on disk."""
        newest_ns = 0
        for path in folder.rglob("*.py"):
            with contextlib.suppress(FileNotFoundError):  # an editor's temporary file, already gone
                newest_ns = max(newest_ns, path.stat().st_mtime_ns)
        return cls(folder, newest_ns)

    @property
    def changed(self) -> bool:
        """Whether a file was changed since."""
        return self.scan(self.folder) != self
