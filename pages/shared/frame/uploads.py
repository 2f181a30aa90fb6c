"""Files that visitors bring: how many are on their way at once, how slowly they may come, and how many are kept.

Streamlit takes any number of files from any session, whether its page asks for one or not, at any pace, and keeps them
for as long as the session. So each session has a share, and where all together are too many, the files of who has
brought none for longest go first. What is in a file is looked at elsewhere.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from streamlit import config, runtime

from pages.shared.frame import permits

FILES_PER_SESSION = 4
SESSION_BYTES = 20 * 2**20
"""What one session may have here: as many of the largest files."""

UPLOADED_BYTES = 256 * 2**20
"""What all sessions may have here, with what is on its way."""

AT_ONCE_EACH, AT_ONCE = 2, 32
"""Files that may be on their way, from one session and from all."""

Sizes = dict[str, dict[str, int]]
"""Session → file → bytes."""


class Uploads:
    """What is on its way, and what has come."""

    def __init__(self) -> None:
        self._under_way: list[tuple[str, int]] = []
        self._seen: dict[str, float] = {}

    def refusal(self, session_id: str, size: int) -> tuple[int, str]:
        """Why a session may not bring a file of some bytes now, as a status of HTTP and a sentence; empty if it may."""
        if reason := permits.may_upload():
            return 403, reason
        if not runtime.exists() or not runtime.get_instance().is_active_session(session_id):
            return 400, "There is no such session."
        stored = _stored_bytes()
        own = list(stored.get(session_id, {}).values())
        coming = [coming for of, coming in self._under_way if of == session_id]
        if len(own) + len(coming) >= FILES_PER_SESSION or sum(own) + sum(coming) + size > SESSION_BYTES:
            return 429, f"There are {FILES_PER_SESSION} files of yours here already; reload the page to begin anew."
        if len(coming) >= AT_ONCE_EACH:
            return 429, f"{AT_ONCE_EACH} files of yours are on their way already; try again when one has come."
        if len(self._under_way) >= AT_ONCE or not self._make_room(size, session_id, stored):
            return 503, "The server takes as many files as it can; try again in a minute."
        return 200, ""

    @contextlib.contextmanager
    def on_its_way(self, session_id: str, size: int) -> Iterator[None]:
        """For as long as a file comes, its place is taken."""
        entry = (session_id, size)
        self._under_way.append(entry)
        try:
            yield
        finally:
            self._under_way.remove(entry)
            self._seen[session_id] = time.monotonic()

    def _make_room(self, size: int, session_id: str, stored: Sizes) -> bool:
        """Let files go until one more of some bytes fits beside what is kept and on its way; whether it does."""
        self._seen = {name: at for name, at in self._seen.items() if name in stored}
        taken = sum(sum(files.values()) for files in stored.values()) + sum(coming for _, coming in self._under_way)
        excess = taken + size - UPLOADED_BYTES
        spared = {session_id, *(of for of, _ in self._under_way)}
        idle = sorted((name for name in stored if name not in spared), key=lambda name: self._seen.get(name, 0.0))
        for name in idle:
            for file_id, kept in stored[name].items():
                if excess <= 0:
                    return True
                _files().remove_file(name, file_id)
                excess -= kept
        return excess <= 0


def announced_bytes(headers: Mapping[str, str]) -> int:
    """Bytes that an upload says it has; those of the largest one where it does not say, or more, which is refused."""
    largest = int(config.get_option("server.maxUploadSize")) * 2**20
    text = headers.get("content-length", "")
    return min(int(text), largest) if text.isascii() and text.isdigit() and len(text) < 20 else largest


def _stored_bytes() -> Sizes:
    """What Streamlit keeps."""
    kept = list(_files().file_storage.items())
    return {name: {file_id: len(file.data) for file_id, file in list(files.items())} for name, files in kept}


def _files() -> Any:
    return runtime.get_instance().uploaded_file_mgr
