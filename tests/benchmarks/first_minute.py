"""How long does a newcomer wait? From the start of a server to a verdict, in fresh browsers, with nothing stored.

    python -m tests.benchmarks.first_minute [--starts 10] [--busy 0] [--app FOLDER] [--json]

Each start has a server, a store, a folder of jobs and a browser of its own. Measured are the seconds from the server's
start to the picture of the front page, from there to a button Run that can be pressed, and from its press, the only
click, to the first figures and to the verdict; then, for a second browser on the same server, from the address to the
picture, and the pictures drawn in a second during which the slider is dragged. A start is won if the verdict names a
winner within 20 s of the press, for this load of the machine at least. `--busy` programs that never rest share it.
"""

import argparse
import contextlib
import dataclasses
import json
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from core.answer.speedup import speedup
from core.answer.verdict import verdict_sentence
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.results.store import Store
from tests.benchmarks.sessions import server
from tests.browser.conftest import FLAGS

PROMISED_S = 20.0
"""Seconds from Run to a verdict."""

PATIENCE_S = 180.0

LOOK_S = 0.5
"""Time between looks at what is being measured, which each look disturbs."""

DRAG = """
async picture => {
    const slider = picture.querySelector('input[type=range]'), low = Number(slider.min), high = Number(slider.max);
    const seen = () => [...picture.querySelectorAll('svg, output')].map(part => part.outerHTML).join();
    const begin = performance.now();
    let before = seen(), drawn = 0, step = 0;
    while (performance.now() - begin < 1000) {
        slider.value = low + (++step % (high - low + 1));
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        await new Promise(requestAnimationFrame);
        const now = seen();
        drawn += now !== before;
        before = now;
    }
    return drawn;
}
"""
"""Moves the slider for a second; returns how many frames showed another picture than the frame before."""


DRAWN = """
() => {
    const roots = [...document.querySelectorAll('*')].map(part => part.shadowRoot).filter(Boolean);
    const drawn = [document, ...roots].some(root => root.querySelector('.picture .moving line'));
    return drawn && (performance.timeOrigin + performance.now()) / 1000;
}
"""
"""The time of day once the picture is drawn, looked at in each frame. A locator looks up to half a second late."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """Seconds of one start; a time is None where it was waited for in vain.

    Attributes:
        cold: from the server's start to the picture.
        run: from the picture to where Run can be pressed.
        so_far: from pressing it to the first times of a step.
        verdict: to the end of the run.
        warm: from the address to the picture, in a second browser.
        frames: pictures in a second of dragging.
        pairs: of blocks that it took.
        said: the verdict in a sentence.
        named: whether it names a winner.
    """

    cold: float | None
    run: float | None
    so_far: float | None
    verdict: float | None
    warm: float | None
    frames: int
    pairs: int
    said: str
    named: bool

    @property
    def won(self) -> bool:
        """Whether a winner was named in time."""
        return self.named and self.verdict is not None and self.verdict <= PROMISED_S


def until(there: Callable[[], bool], begin: float, look_s: float = 0.05) -> float | None:
    """Seconds since `begin` until something is there, looked at every `look_s` seconds; None if it never is."""
    while time.perf_counter() - begin < PATIENCE_S:
        with contextlib.suppress(OSError):
            if there():
                return time.perf_counter() - begin
        time.sleep(look_s)
    return None


@contextlib.contextmanager
def opened(browser: Browser, port: int) -> Iterator[Page]:
    """The front page in a browser that was never here."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
    yield page
    context.close()


def drawn(page: Page) -> float | None:
    """Time of day, in seconds, at which the picture had its line at the slider's size; None if it never had."""
    with contextlib.suppress(TimeoutError):
        return float(page.wait_for_function(DRAWN, timeout=1_000 * PATIENCE_S).json_value())
    return None


def navigated(page: Page) -> float:
    """Time of day, in seconds, at which the browser began to load the page."""
    return float(page.evaluate("performance.timeOrigin / 1000"))


def start(browser: Browser, app: Path) -> Start:
    """One server of a checkout from its start to the verdict."""
    folder = Path(tempfile.mkdtemp())
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    begin = time.time()
    folders = {"CROSSOVER_JOBS": str(queue.folder), "CROSSOVER_RESULTS": str(store.folder)}
    with server(app=app, **folders) as port:
        with opened(browser, port) as page:
            cold, there = drawn(page), time.perf_counter()
            button = page.get_by_role("button", name="Run", exact=True)
            run = until(lambda: button.count() > 0 and button.first.is_enabled(), there)
            button.first.click()
            pressed = time.perf_counter()
            so_far = until(lambda: any(_timed(job) for job in queue.jobs()), pressed, LOOK_S)
            verdict = until(lambda: any(not job.active for job in queue.jobs()), pressed, LOOK_S)
        with opened(browser, port) as page:
            warm, opened_at = drawn(page), navigated(page)
            frames = page.locator(".picture").evaluate(DRAG)
    queue.worker_file.dismiss()
    rows = sorted(store.trials(), key=lambda row: row.contender)
    answer = speedup(rows[0], rows[-1]) if len(rows) > 1 else None
    shutil.rmtree(folder, ignore_errors=True)
    return Start(
        cold=cold and cold - begin,
        run=run,
        so_far=so_far,
        verdict=verdict,
        warm=warm and warm - opened_at,
        frames=frames,
        pairs=answer.pairs if answer else 0,
        said=verdict_sentence(answer) if answer else "missing",
        named=bool(answer and (answer.has_winner or answer.is_conditional)),
    )


def _timed(job: object) -> bool:
    progress = getattr(job, "progress", None)
    return not getattr(job, "active", True) or bool(progress and any(each.step_s for each in progress.contenders))


TIMES = ("cold", "run", "so_far", "verdict", "warm")


def line(name: str, found: Start) -> str:
    """One line of the table."""
    times = (getattr(found, time) for time in TIMES)
    cells = ["never" if seconds is None else f"{seconds:.1f} s" for seconds in times]
    won = "yes" if found.won else "no"
    return f"| {name} | {' | '.join(cells)} | {found.frames} | {found.pairs} | {won} | {found.said} |"


def _never_rest() -> None:
    while True:
        pass


@contextlib.contextmanager
def shared_with(programs: int) -> Iterator[None]:
    """Let programs that never rest share the machine."""
    others = [multiprocessing.Process(target=_never_rest, daemon=True) for _ in range(programs)]
    for other in others:
        other.start()
    yield
    for other in others:
        other.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--busy", type=int, default=0, help="programs that never rest")
    parser.add_argument("--app", type=Path, default=PROJECT, help="another checkout of it, to set beside this one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[Start] = []
    if not options.json:
        print("| start | cold | Run | so far | verdict | warm | frames | pairs | won | said |\n" + "|---" * 10 + "|")
    with shared_with(options.busy), sync_playwright() as playwright:
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
    frames = statistics.median(one.frames for one in found)
    print(f"| median | {medians} | {frames:g} | | | |\n")
    print(f"{won} of {len(found)} starts named a winner within {PROMISED_S:g} s of Run.")


if __name__ == "__main__":
    main()
