"""Real measurements in little time: blocks and warm-ups that are a tenth as long, for tests that ask what is measured.

How long a block is, is tested by `tests/unit/measure/readings/test_timer.py`. In a process of its own, as the worker of
a queue: `python -m tests.brief --jobs FOLDER`.
"""

import sys
from collections.abc import Callable
from typing import Any

COMMAND = (sys.executable, "-m", "tests.brief")
"""How `core.jobs.client` starts a worker whose measurements are brief."""

BLOCK_S, WARM_UP_S, LEAD_IN_S = 0.01, 0.02, 0.002


def measurements(put: Callable[[object, str, Any], None] = setattr) -> None:
    """Let what is measured in this process be brief, for good or, put by a `monkeypatch.setattr`, for a test."""
    from core.measure import breakdown, contender, timer

    for module in (timer, contender, breakdown):
        put(module, "MIN_BLOCK_S", BLOCK_S)
    put(timer, "LEAD_IN_S", LEAD_IN_S)
    put(contender, "WARM_UP_S", WARM_UP_S)


def _serve() -> None:
    from core.jobs import client

    client.COMMAND = COMMAND  # before the module of who takes a worker's place reads it
    from core.jobs.worker import __main__ as worker

    load = worker.load_backend

    def brief():
        bench = load()
        measurements()
        return bench

    worker.load_backend = brief
    worker.run_worker()


if __name__ == "__main__":
    _serve()
