"""Whether the server is well, for a proxy or a watcher: without names, paths or versions."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import CrossoverError
from pages.shared import queries

HEALTH_S = 5.0
"""How long an answer on the server's health is given again: asking must cost nothing, the disk is written for it."""

_health: tuple[float, dict[str, Any]] = (-HEALTH_S, {})


def health(_request: Request) -> JSONResponse:
    """Whether measurements can be asked for and kept."""
    global _health
    asked_at, found = _health
    if time.monotonic() - asked_at >= HEALTH_S:
        found = state_of_server()
        _health = (time.monotonic(), found)
    return JSONResponse(found, status_code=200 if found["ok"] else 503, headers={"cache-control": "no-store"})


def state_of_server() -> dict[str, Any]:
    """The store, the worker and the queue, in words and counts.

    The worker leaves when there is nothing to do and is started when there is: that it is away is no fault, unless
    somebody waits for it.
    """
    store = queue = "well"
    waiting, worker = 0, "away"
    try:
        queries.open_store().check_writable()
    except CrossoverError:
        store = "cannot be written"
    try:
        jobs = queries.open_queue().jobs()
        waiting = sum(job.state == "queued" for job in jobs)
        serving = queries.open_queue().worker_file.serving
        if serving and serving.process.alive:
            worker = "ready" if serving.ready else "starting"
    except (CrossoverError, OSError):
        queue = "cannot be read"
    stuck = waiting > 0 and worker == "away"
    ok = store == queue == "well" and not stuck
    return {"ok": ok, "store": store, "queue": queue, "waiting": waiting, "worker": worker}


ROUTES = (Route("/health", health),)
"""What `st.App` is given."""
