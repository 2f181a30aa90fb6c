"""Addresses at which machines share files: what is known of one before anything that reaches a server is loaded.

Most folders mirror no address, and whoever uses them need not load `core.files.shared`.
"""

import re
from pathlib import Path

FILE = ".address"
"""Name of the file of a folder that says which address it mirrors."""

ONCE = "once-"
"""Beginning of names that say what a file answers: of several machines that write such a file, the first counts."""

_IS_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether a text is an address, and not a folder of this machine."""
    return bool(_IS_ADDRESS.match(text))


def read_mirror_address(folder: Path) -> str:
    """The address that a folder mirrors; empty if it is an ordinary one."""
    try:
        return (folder / FILE).read_text()
    except OSError:
        return ""
