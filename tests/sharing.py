"""How the workers of pytest-xdist share the tests: who gets which, and in which order."""

from collections.abc import Iterable

from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/"
FIRST = 0.8
"""Share of the order within which the tests that wait have their turn, so that at the end no worker waits alone."""

WAITING = "tests/integration/"


class Sharing(LoadFileScheduling):
    """The tests of a file go to one worker, so that what they share is made once; so do all those of the browser."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else str(super()._split_scope(nodeid))


def turns(files: Iterable[str]) -> dict[str, float]:
    """Where the tests of each file have their turn, from 0 to 1: those that mostly wait among those that compute.

    Args:
        files: in the order in which they were found.
    """
    folders: dict[str, list[str]] = {}
    for file in dict.fromkeys(files):
        kind = next((kind for kind in (BROWSER, WAITING) if file.startswith(kind)), "")
        folders.setdefault(kind, []).append(file)
    return {
        file: 0.0 if kind == BROWSER else (place + 0.5) / len(found) * (FIRST if kind == WAITING else 1.0)
        for kind, found in folders.items()
        for place, file in enumerate(found)
    }
