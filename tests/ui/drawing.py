"""Charts become files in one process for all tests of pages; the product starts one for each report.

The one of its own is tried by `tests/unit/answer/export/test_pictures.py`. `python -m tests.ui.drawing` reads a kind
and a chart a line and answers each with a line; it is begun anew if a test ended what it found running.
"""

import base64
import io
import json
import subprocess
import sys
from typing import Any

from core.answer.export import rendering


class Drawing:
    """The process, from the first chart on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, kind: str, what: Any) -> bytes:
        """What takes the place of `pictures._converted`."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = (sys.executable, "-m", "tests.ui.drawing")
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        asked, answered = self._process.stdin, self._process.stdout
        assert asked
        assert answered
        print(json.dumps([kind, json.dumps(rendering.clean_spec(what))]), file=asked, flush=True)
        line = answered.readline()
        assert line, "this chart cannot be drawn"
        return base64.b64decode(line)

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()


def _serve() -> None:
    out = sys.stdout
    for line in sys.stdin:
        sys.stdout = io.TextIOWrapper(written := io.BytesIO())
        rendering._main(*json.loads(line))
        sys.stdout.flush()
        print(base64.b64encode(written.getvalue()).decode(), file=out, flush=True)


if __name__ == "__main__":
    _serve()
