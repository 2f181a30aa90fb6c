"""The first half hour on a rented accelerator, in one command that may be ended anywhere and taken up again.

    python3 -m tests.gpu.session --out DIR [--state DIR] [--seconds 560] [--device cuda:0]

Each step of `tests.gpu.steps` runs in a process group of its own and is begun only if it can end within what is left.
After every step the results are written whole into `--out`, at most six files: session.json, report.md, rows.parquet,
exhibits.tar, junit.xml, logs.tar.gz. With `--state`, the folder that an earlier call wrote (the same one, or a copy on
another machine), what was done is not done again, and its rows and exhibits are kept. Exit status 1 if a step failed.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from core.errors import CrossoverError
from core.files import atomic
from core.files.project import PROJECT
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.results import exchange
from core.results.exhibits import EXHIBITS_FOLDER as EXHIBITS
from core.results.store import Store
from tests.gpu.steps import Step, steps

MOST_TRIES = 2
"""How often a step is begun that did not come to its end; one that takes the machine down is not met for ever."""

ENDING_S = 5.0
"""Kept back for what comes after the last step: its rows, the report."""

GRACE_S = 3.0
"""What a step has to leave in order, once it is asked to."""

LOG_BYTES = 400_000
"""Of the end of each log; 50 of them stay below what a file may have."""

REPORT_LINES = 60


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of a step.

    Attributes:
        tries: how often it was begun.
        status: its exit status; None while it runs, and for one that was cut off with the session.
        seconds: how long it took.
        ended: `well`, `failed`, `at its cap`, or `cut off`.
        device: what it was done on.
        at: when it was begun, UTC.
    """

    tries: int = 1
    status: int | None = None
    seconds: float = 0.0
    ended: str = "cut off"
    device: str = ""
    at: str = ""

    @property
    def over(self) -> bool:
        """Whether it is not to be begun again."""
        return self.ended in ("well", "at its cap") or self.tries >= MOST_TRIES


class Session:
    """One call: its folders, and what was done by it and before.

    Attributes:
        out: where results are written.
        work: a folder of its own for the store, the queue, and logs.
        device: the accelerator, or `cpu`.
        done: by the step's name.
    """

    def __init__(self, out: Path, work: Path, device: str) -> None:
        self.out, self.work, self.device = out, work, device
        self.done: dict[str, Done] = {}
        self.store, self.logs, self.junit = work / "store", work / "logs", work / "junit.xml"
        for folder in (out, self.store / EXHIBITS, self.logs):
            folder.mkdir(parents=True, exist_ok=True)

    def take_up(self, state: Path) -> None:
        """Go on where an earlier call was; a file that is not there or torn counts as nothing done."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            before = json.loads((state / "session.json").read_text(encoding="utf-8"))
            self.done = {name: Done(**entry) for name, entry in before["steps"].items()}
        with contextlib.suppress(OSError):  # as it is: it was measured by a session, and is not from elsewhere
            shutil.copyfile(state / "rows.parquet", self.store / "earlier.parquet")
        for name, folder in (("exhibits.tar", self.store / EXHIBITS), ("logs.tar.gz", self.logs)):
            with contextlib.suppress(OSError, tarfile.TarError), tarfile.open(state / name) as packed:
                packed.extractall(folder, filter="data")
        with contextlib.suppress(OSError):
            self.junit.write_bytes((state / "junit.xml").read_bytes())

    def run(self, asked: Sequence[Step], seconds: float) -> None:
        """Do what fits, in order; a step that is too long for what is left lets shorter ones go before it."""
        deadline = time.monotonic() + seconds - ENDING_S
        for step in asked:
            before = self.done.get(step.name)
            if (before and before.over) or time.monotonic() + step.cap_s > deadline:
                continue
            begun = Done(tries=before.tries + 1 if before else 1, device=self.device, at=_now())
            self.done[step.name] = begun
            self._note(asked)
            print(f"{step.name}: {' '.join(step.command)}", flush=True)
            self.done[step.name] = self._do(step, begun)
            self.write(asked)
            print(f"{step.name}: {self.done[step.name].ended}, {self.done[step.name].seconds:.0f} s", flush=True)

    def _do(self, step: Step, begun: Done) -> Done:
        own = {JOBS_VARIABLE: str(self.work / "jobs"), "PYTHONUNBUFFERED": "1"}
        start = time.monotonic()
        with (self.logs / f"{step.name}.log").open("wb") as log:
            process = subprocess.Popen(
                step.command,
                cwd=PROJECT,
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(step.cap_s)
            except subprocess.TimeoutExpired:
                self._end(process)
            except BaseException:
                self._end(process)
                raise
        seconds = round(time.monotonic() - start, 1)
        _shorten(self.logs / f"{step.name}.log")
        capped = seconds >= step.cap_s
        ended = "at its cap" if capped else "failed" if process.returncode else "well"
        return dataclasses.replace(begun, status=process.returncode, seconds=seconds, ended=ended)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        """End all of a step, the measuring process that it asked for included."""
        for number, grace_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
                break
        self.dismiss()

    def dismiss(self) -> None:
        """End the measuring process of this session, if there is one."""
        with contextlib.suppress(CrossoverError, OSError):
            Queue(self.work / "jobs").worker_file.dismiss()

    def write(self, asked: Sequence[Step]) -> None:
        """Write all results, each file whole."""
        self._note(asked)
        with contextlib.suppress(CrossoverError):
            rows = exchange.export(Store(self.store).read().table, "parquet")
            atomic.write_atomically(self.out / "rows.parquet", lambda file: file.write(rows))
        atomic.write_atomically(self.out / "exhibits.tar", lambda file: _pack(self.store / EXHIBITS, file))
        atomic.write_atomically(self.out / "logs.tar.gz", lambda file: _pack(self.logs, file, compressed=True))
        if self.junit.is_file():
            atomic.write_atomically(self.out / "junit.xml", lambda file: file.write(self.junit.read_bytes()))
        text = "\n".join(self._report(asked))
        atomic.write_atomically(self.out / "report.md", lambda file: file.write(text.encode()))

    def _note(self, asked: Sequence[Step]) -> None:
        """Say what was done and what is left, before anything else is written."""
        left = [step.name for step in asked if step.name not in self.done or not self.done[step.name].over]
        about = {"device": self.device, "written": _now(), "left": left}
        steps = {name: dataclasses.asdict(entry) for name, entry in self.done.items()}
        atomic.write_json(self.out / "session.json", about | {"steps": steps})

    def _report(self, asked: Sequence[Step]) -> Iterator[str]:
        yield from (
            f"# A session on {self.device}",
            "",
            "| step | shows | ended | seconds | tries |",
            "|---|---|---|---|---|",
        )
        for step in asked:
            entry = self.done.get(step.name)
            ended, seconds, tries = (entry.ended, entry.seconds, entry.tries) if entry else ("not begun", "", 0)
            yield f"| {step.name} | {step.value} | {ended} | {seconds} | {tries} |"
        for step in asked:
            log = self.logs / f"{step.name}.log"
            if log.is_file():
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-REPORT_LINES:]
                yield from ("", f"## {step.name}", "", f"    {' '.join(step.command)}", "", "```text", *lines, "```")


def main(arguments: Sequence[str] | None = None) -> int:
    """Go through the list for so many seconds."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpu.session", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of results; made where it is not there")
    parser.add_argument("--state", type=Path, help="folder of results of an earlier call, to go on from")
    parser.add_argument("--seconds", type=float, default=560.0)
    parser.add_argument("--device", default="", help="the first accelerator unless given; cpu where there is none")
    parser.add_argument("--list", action="store_true", help="say what would be done, and how long it may take")
    options = parser.parse_args(arguments)
    device = options.device or _first_accelerator()
    with tempfile.TemporaryDirectory(prefix="crossover-session-") as work:
        session = Session(options.out.absolute(), Path(work), device)
        asked = steps(device, store=session.store, junit=session.junit)
        if options.list:
            print("\n".join(f"{step.cap_s:4.0f} s  {step.name}: {step.value}" for step in asked))
            print(f"{sum(step.cap_s for step in asked) / 60:.0f} min at most")
            return 0
        if options.state:
            session.take_up(options.state.absolute())
        try:
            session.run(asked, options.seconds)
        finally:
            session.dismiss()
            session.write(asked)
    return 1 if any(entry.ended != "well" for entry in session.done.values()) else 0


def _first_accelerator() -> str:
    """The first one that there is, or `cpu`."""
    from core.measure import devices  # loads torch, which a session does without

    return next((info.device for info in devices.discover() if info.kind != "cpu"), "cpu")


def _shorten(log: Path) -> None:
    if log.stat().st_size > LOG_BYTES:
        log.write_bytes(log.read_bytes()[-LOG_BYTES:])


def _pack(folder: Path, file: BinaryIO, *, compressed: bool = False) -> None:
    with tarfile.open(fileobj=file, mode="w:gz" if compressed else "w") as packed:
        for path in sorted(folder.glob("*")):
            packed.add(path, arcname=path.name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
