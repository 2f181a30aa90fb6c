"""How quick is the app? First meaningful content in a fresh browser, and a re-run after moving a slider.

    python -m tests.benchmarks.app [--rounds 10]

Cold: the server has just started and nobody was there yet. Fresh: another browser with an empty cache comes later.
Re-run: from sending the slider's new value over the websocket to the end of the script run, without a browser.
"""

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from core.jobs.queue import Queue
from tests.benchmarks.sessions import Session, server
from tests.browser.conftest import FLAGS

CONTENT = "parameters"
"""Word of the line that says what the chosen model costs: the first thing that answers the visitor."""

SLIDER, VALUES = "Depth", (1, 2, 3, 4)


def first_content_s(browser: Browser, port: int) -> float:
    """Seconds from going to the page to its first meaningful content, with an empty cache."""
    context = browser.new_context()
    page = context.new_page()
    begin = time.perf_counter()
    page.goto(f"http://127.0.0.1:{port}/compare", wait_until="commit")
    page.get_by_text(CONTENT).first.wait_for()
    seconds = time.perf_counter() - begin
    context.close()
    return seconds


async def reruns_s(port: int, rounds: int) -> list[float]:
    """Seconds of each run after moving one slider."""
    session = Session(port)
    await session.open()
    times = [await session.slide(SLIDER, VALUES[number % len(VALUES)]) for number in range(rounds + 2)]
    await session.close()
    return times[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cold, fresh, reruns = [], [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for _ in range(options.rounds):
            folder = Path(tempfile.mkdtemp())
            jobs, results = str(folder / "jobs"), str(folder / "results")
            with server(CROSSOVER_JOBS=jobs, CROSSOVER_RESULTS=results) as port:
                cold.append(first_content_s(browser, port))
                time.sleep(8)  # the worker has started, which the first visit asked for
                fresh.append(first_content_s(browser, port))
                with ThreadPoolExecutor(1) as apart:  # Playwright has an event loop in this thread already
                    reruns += apart.submit(lambda port=port: asyncio.run(reruns_s(port, 10))).result()
            Queue(Path(jobs)).worker_file.dismiss()
        browser.close()
    print("| what | median | lowest | highest |\n|---|---|---|---|")
    for name, times in (("cold server, fresh browser", cold), ("fresh browser", fresh), ("slider re-run", reruns)):
        print(f"| {name} | " + " | ".join(f"{1e3 * f(times):.0f} ms" for f in (statistics.median, min, max)) + " |")


if __name__ == "__main__":
    main()
