"""Does the interval of a run say what the next run will say? Three questions, each asked again and again.

    python -m tests.benchmarks.repeats [--repeats 20] [--devices cpu@1,cpu@2] [--store FOLDER] [--page]

Every run goes through the command line with `--fresh`, all questions in turns. For each question: the median of all
runs, the share of intervals that hold it, the median width of an interval, and how far results spread. Run it alone on
a quiet machine. With `--store`, runs are added to those of a store, so that the machine's repeated questions count.
With `--page`, each is also asked on the page, in a browser that stays open, right after the command line.
"""

import argparse
import contextlib
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, expect, sync_playwright

from core.answer.speedup import speedup
from core.jobs.queue import Queue
from core.results.store import Store
from tests.benchmarks.first_minute import until
from tests.benchmarks.sessions import server
from tests.browser.conftest import FLAGS

QUESTIONS = {
    "digits, MLP, hidden size 1,024": "--dataset digits --model mlp --hidden-size 1024",
    "digits, MLP, hidden size 256": "--dataset digits --model mlp --hidden-size 256",
    "tokens, GRU, hidden size 128": "--dataset token-order --model gru --hidden-size 128 --depth 1",
}

LOOK_S = 2.0
"""Time between looks at the queue, as on the page: each reads every job, at the cost of what is being timed."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one run said of its challenger."""

    value: float
    low: float
    high: float
    pairs: int
    rounds: int
    condition: str


def ask_question(training: str, devices: str, store: str) -> Answer | None:
    """Run a question anew; None where it has no interval."""
    command = [sys.executable, "-m", "core", "run", *training.split(), "--devices", devices, "--fresh", "--json"]
    done = subprocess.run(
        [*command, "--store", store], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=600
    )
    return read_answer(json.loads(done.stdout)["comparisons"][0])


def read_answer(found: Mapping[str, Any]) -> Answer | None:
    """The fields of a comparison that an answer has; None where it has no interval."""
    return None if found["low"] is None else Answer(**{name: found[name] for name in Answer.__dataclass_fields__})


AskPage = Callable[[str, str], Answer | None]


@contextlib.contextmanager
def opened_page(folder: Path) -> Iterator[AskPage]:
    """What asks questions on a page that stays open, with a store and a measuring process of its own."""
    queue, store = Queue(folder / "jobs"), Store(folder / "results")
    folders = {"CROSSOVER_JOBS": str(queue.folder), "CROSSOVER_RESULTS": str(store.folder)}
    with server(**folders) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})

        def ask(training: str, devices: str) -> Answer | None:
            words = training.replace("--", "").split()
            settings = {name.replace("-", "_"): value for name, value in zip(words[::2], words[1::2], strict=True)}
            page.goto(f"http://127.0.0.1:{port}/?{urlencode({**settings, 'devices': devices.split(',')}, doseq=True)}")
            return _measure_anew(page, queue, store)

        yield ask
        browser.close()
        queue.worker_file.dismiss()


def _measure_anew(page: Page, queue: Queue, store: Store) -> Answer | None:
    known = {job.id for job in queue.jobs()}
    page.get_by_role("button", name="Run", exact=True).click()
    again = page.get_by_role("button", name="Measure again", exact=True)
    expect(page.get_by_role("button", name="Stop", exact=True).or_(again).first).to_be_visible(timeout=30_000)
    if again.count():
        again.first.click()
    begin = time.perf_counter()
    if until(lambda: any(job.id not in known and not job.active for job in queue.jobs()), begin, LOOK_S) is None:
        return None
    (job,) = (job for job in queue.jobs() if job.id not in known)
    found = speedup(*sorted(store.trials(run_id=job.run_id), key=lambda row: row.contender))
    return read_answer(vars(found))


def summarize(answers: list[Answer]) -> str:
    """Cells of a table: of all runs of one question."""
    middle = statistics.median(one.value for one in answers)
    held = sum(one.low <= middle <= one.high for one in answers)
    width = statistics.median(one.high / one.low for one in answers)
    spread = math.exp(1.96 * statistics.pstdev(math.log(one.value) for one in answers)) - 1
    loaded = sum(bool(one.condition) for one in answers)
    return (
        f"{middle:.3f}× | {held} of {len(answers)} | {width:.3f} | ±{100 * spread:.0f} % | "
        f"{statistics.mean(one.pairs for one in answers):.0f} | {loaded}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--devices", default="cpu@1,cpu@2")
    parser.add_argument("--store", default="")
    parser.add_argument("--page", action="store_true", help="ask on the page, too")
    options = parser.parse_args()
    answers: dict[str, list[Answer]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ask_page = stack.enter_context(opened_page(Path(folder) / "page")) if options.page else None
        for number in range(options.repeats):
            for name, training in QUESTIONS.items():
                asked = {name: ask_question(training, options.devices, options.store or folder)}
                if ask_page is not None:
                    asked[f"{name}, on the page"] = ask_page(training, options.devices)
                for where, found in asked.items():
                    if found is not None:
                        answers.setdefault(where, []).append(found)
                        print(f"{number + 1} {where}: {found}", file=sys.stderr, flush=True)
    print("| question | median | intervals that hold it | width (high / low) | spread of results | pairs | loaded |")
    print("|---|---|---|---|---|---|---|")
    for name, found in answers.items():
        print(f"| {name} | {summarize(found)} |")


if __name__ == "__main__":
    main()
