"""Charts become files in one process for all tests of pages; the product starts one for each report.

The one of its own is tried by `tests/unit/answer/export/test_pictures.py`.
"""

import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from core.answer.export import pictures


@contextmanager
def converting() -> Iterator[Callable[[str, Any], bytes]]:
    """What takes the place of `pictures._converted`; the process starts with the first chart."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield lambda kind, what: pool.submit(_made, kind, json.dumps(pictures.drawable(what))).result()


def _made(kind: str, text: str) -> bytes:
    sys.stdout = io.TextIOWrapper(written := io.BytesIO())
    pictures._main(kind, text)
    sys.stdout.flush()
    return written.getvalue()
