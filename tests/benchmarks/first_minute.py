"""How long does a newcomer wait? From the start of a server to a verdict, in fresh browsers, with nothing stored.

    python -m tests.benchmarks.first_minute [--starts 10] [--app FOLDER] [--json]

Each start has a server, a store, a folder of jobs and a browser of its own. Taken are the seconds from the server's
start to the front page's first words and to its chart; from opening Compare by the door of the front page, one click,
to where Run can be pressed; and from pressing it, the second, to the first figures and to the verdict. A start is won
if the verdict names a winner within 20 s of the press. With `--app` it is the app of another checkout: where that has
no front page, Compare stands at its address, and the door is no click.
"""

import argparse
import contextlib
import dataclasses
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from core.answer.speedup import speedup
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.results.store import Store
from tests.benchmarks.sessions import server
from tests.browser.conftest import FLAGS

QUESTION = "When does training on a GPU pay off?"
DOOR = "Measure on this machine"
PROMISED_S = 20.0
"""Seconds from Run to a verdict."""

PATIENCE_S = 180.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """Seconds of one start; a time is None where it was waited for in vain.

    Attributes:
        content: from the server's start to the question of the front page.
        chart: to its first chart.
        run: from the click on the door to where Run can be pressed.
        so_far: from pressing it to the first times of a step.
        verdict: to the end of the run.
        pairs: of blocks that it took.
        said: the verdict's code.
    """

    content: float | None
    chart: float | None
    run: float | None
    so_far: float | None
    verdict: float | None
    pairs: int
    said: str

    @property
    def won(self) -> bool:
        """Whether a winner was named in time."""
        return self.said in ("gpu_faster", "cpu_faster") and self.verdict is not None and self.verdict <= PROMISED_S


def until(there: Callable[[], bool], begin: float) -> float | None:
    """Seconds since `begin` until something is there, looked at twenty times a second; None if it never is."""
    while time.perf_counter() - begin < PATIENCE_S:
        with contextlib.suppress(OSError):
            if there():
                return time.perf_counter() - begin
        time.sleep(0.05)
    return None


@contextlib.contextmanager
def opened(browser: Browser) -> Iterator[Page]:
    """A page of a browser that was never here."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


def start(browser: Browser, app: Path) -> Start:
    """One server of a checkout from its start to the verdict."""
    folder = Path(tempfile.mkdtemp())
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    begin = time.perf_counter()
    folders = {"CROSSOVER_JOBS": str(queue.folder), "CROSSOVER_RESULTS": str(store.folder)}
    with server(app=app, **folders) as port, opened(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
        content = until(page.get_by_role("heading", level=1).first.is_visible, begin)
        chart, clicked = None, time.perf_counter()
        if page.get_by_role("heading", name=QUESTION).is_visible():
            chart = until(page.locator("[data-testid=stVegaLiteChart] canvas, .vega-embed svg").first.is_visible, begin)
            clicked = time.perf_counter()
            page.get_by_role("link", name=DOOR).first.click()
        button = page.get_by_role("button", name="Run", exact=True)
        run = until(lambda: button.count() > 0 and button.first.is_enabled(), clicked)
        button.first.click()
        pressed = time.perf_counter()
        so_far = until(lambda: any(_timed(job) for job in queue.jobs()), pressed)
        verdict = until(lambda: any(not job.active for job in queue.jobs()), pressed)
    queue.worker_file.dismiss()
    rows = sorted(store.trials(), key=lambda row: row.contender)
    answer = speedup(rows[0], rows[-1]) if len(rows) > 1 else None
    shutil.rmtree(folder, ignore_errors=True)
    said, pairs = (answer.verdict, answer.pairs) if answer else ("missing", 0)
    return Start(content=content, chart=chart, run=run, so_far=so_far, verdict=verdict, pairs=pairs, said=said)


def _timed(job: object) -> bool:
    progress = getattr(job, "progress", None)
    return not getattr(job, "active", True) or bool(progress and any(each.step_s for each in progress.contenders))


TIMES = ("content", "chart", "run", "so_far", "verdict")


def line(name: str, found: Start) -> str:
    """One line of the table."""
    times = (getattr(found, time) for time in TIMES)
    cells = ["never" if seconds is None else f"{seconds:.1f} s" for seconds in times]
    return f"| {name} | {' | '.join(cells)} | {found.pairs} | {found.said} | {'yes' if found.won else 'no'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--app", type=Path, default=PROJECT, help="another checkout of it, to set beside this one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[Start] = []
    if not options.json:
        print(
            "| start | first words | chart | Run | so far | verdict | pairs | said | within 20 s |\n" + "|---" * 9 + "|"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for number in range(options.starts):
            found.append(start(browser, options.app.absolute()))
            if not options.json:
                print(line(str(number + 1), found[-1]), flush=True)
        browser.close()
    won = sum(one.won for one in found)
    if options.json:
        print(json.dumps([dataclasses.asdict(one) | {"won": one.won} for one in found], indent=2))
        return
    known = {name: [seconds for one in found if (seconds := getattr(one, name)) is not None] for name in TIMES}
    medians = " | ".join(f"{statistics.median(times):.1f} s" if times else "never" for times in known.values())
    print(f"| median | {medians} | | | |\n\n{won} of {len(found)} starts named one within {PROMISED_S:g} s of Run.")


if __name__ == "__main__":
    main()
