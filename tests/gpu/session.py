"""The first half hour on a rented accelerator, in one command that may be ended anywhere and taken up again.

    python3 -m tests.gpu.session --out DIR [--state DIR] [--seconds 560] [--device cuda:0]

Each step of `tests.gpu.steps` runs in a process group of its own and is begun only if it can end within what is left.
After every step the results are written whole into `--out`, at most five files: session.json, report.md, rows.parquet
once there are rows, exhibits.tar, logs.tar.gz. With `--state`, the folder that an earlier call wrote (the same one, or
a copy on another machine), what was done is not done again, and its rows and exhibits are kept. A step that failed or
was at its cap is taken up once. Exit status 1 if a step of the list did not end well, or if nothing could be begun.
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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import psutil

from core.errors import CrossoverError
from core.files import documents
from core.files.project import PROJECT
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.measure import gpu
from core.results import exchange
from core.results.exhibits import EXHIBITS_FOLDER as EXHIBITS
from core.results.store import Store
from tests.gpu.steps import CALL_S, PYTHON, Step, steps

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
        return self.ended == "well" or self.tries >= MOST_TRIES


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
        self.store, self.logs = work / "store", work / "logs"
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

    def run(self, asked: Sequence[Step], seconds: float) -> int:
        """Do what fits, in order; a step that is too long for what is left lets shorter ones go before it.

        Steps that were at their cap in an earlier call come after all others.

        Returns:
            How many steps were begun.
        """
        deadline, number = time.monotonic() + seconds - ENDING_S, 0
        for step in sorted(self.left(asked), key=self._was_at_its_cap):
            before = self.done.get(step.name)
            if time.monotonic() + step.cap_s > deadline:
                continue
            number += 1
            begun = Done(tries=before.tries + 1 if before else 1, device=self.device, at=_now())
            self.done[step.name] = begun
            self._note(asked)
            print(f"{step.name}: {' '.join(step.command)}", flush=True)
            self.done[step.name] = self._do(step, begun)
            self.write(asked)
            print(f"{step.name}: {self.done[step.name].ended}, {self.done[step.name].seconds:.0f} s", flush=True)
        return number

    def left(self, asked: Sequence[Step]) -> list[Step]:
        """Steps that are still to be done."""
        return [step for step in asked if step.name not in self.done or not self.done[step.name].over]

    def _was_at_its_cap(self, step: Step) -> bool:
        return step.name in self.done and self.done[step.name].ended == "at its cap"

    def _do(self, step: Step, begun: Done) -> Done:
        if is_exclusive() and step.command[:3] != (PYTHON, "-m", "core"):
            self.dismiss()  # a measuring process that idles keeps the GPU from every other
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
        members = _find_family(process.pid)
        if sys.platform != "win32":  # there, nothing asks a program to end in order
            for member in members:
                with contextlib.suppress(psutil.Error):
                    member.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        for member in (*members, *_find_family(process.pid)):
            with contextlib.suppress(psutil.Error):
                member.kill()
        process.wait()
        self.dismiss()

    def dismiss(self) -> None:
        """End the measuring process of this session, if there is one."""
        with contextlib.suppress(CrossoverError, OSError):
            Queue(self.work / "jobs").worker_file.dismiss()

    def write(self, asked: Sequence[Step]) -> None:
        """Write all results, each file whole."""
        with _delay_interrupt():
            self._note(asked)
            with contextlib.suppress(CrossoverError):
                table = Store(self.store).read().table
                rows = exchange.export(table, "parquet") if table.num_rows else b""
                if rows:
                    documents.write_atomically(self.out / "rows.parquet", lambda file: file.write(rows))
            documents.write_atomically(self.out / "exhibits.tar", lambda file: _pack(self.store / EXHIBITS, file))
            documents.write_atomically(self.out / "logs.tar.gz", lambda file: _pack(self.logs, file, compressed=True))
            text = "\n".join(self._report(asked))
            documents.write_atomically(self.out / "report.md", lambda file: file.write(text.encode()))

    def _note(self, asked: Sequence[Step]) -> None:
        """Say what was done and what is left, before anything else is written."""
        about = {"device": self.device, "written": _now(), "left": [step.name for step in self.left(asked)]}
        steps = {name: dataclasses.asdict(entry) for name, entry in self.done.items()}
        documents.write_json(self.out / "session.json", about | {"steps": steps})

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
    parser.add_argument("--seconds", type=float, default=CALL_S)
    parser.add_argument("--device", default="", help="the first accelerator unless given; cpu where there is none")
    parser.add_argument("--list", action="store_true", help="say what would be done, and how long it may take")
    options = parser.parse_args(arguments)
    accelerators = {} if options.device == "cpu" else find_accelerators()
    device = options.device or next(iter(accelerators), "cpu")
    with tempfile.TemporaryDirectory(prefix="crossover-session-") as work:
        session = Session(options.out.absolute(), Path(work), device)
        asked = steps(device, store=session.store, logs=session.logs, accelerators=accelerators)
        if options.list:
            print("\n".join(_list_steps(asked)))
            return 0
        if options.state:
            session.take_up(options.state.absolute())
        number = 0
        try:
            number = session.run(asked, options.seconds)
        finally:
            session.dismiss()
            session.write(asked)
        left = session.left(asked)
        if left and not number:
            shortest_s = min(step.cap_s for step in left) + ENDING_S
            print(f"Nothing was begun: the shortest step may take {shortest_s:.0f} s. Give more with --seconds.")
    return exit_status(session, asked, number)


def exit_status(session: Session, asked: Sequence[Step], number: int) -> int:
    """1 if a step of the list did not end well, or if steps are left and this call began none; else 0."""
    failed = any(step.name in session.done and session.done[step.name].ended != "well" for step in asked)
    return int(failed or (bool(session.left(asked)) and not number))


def find_accelerators() -> Mapping[str, Collection[str]]:
    """Accelerators of this machine, each with the lanes that it refuses; asked of a process that uses them and ends."""
    asked = (PYTHON, "-m", "tests.gpu.facts", "--accelerators")
    done = subprocess.run(asked, cwd=PROJECT, stdout=subprocess.PIPE, check=True)
    found: Mapping[str, Collection[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_exclusive() -> bool:
    """Whether some NVIDIA GPU of this machine admits one process at a time."""
    with contextlib.suppress(Exception):  # no driver, or it refuses
        library = gpu.nvml()
        cards = map(library.nvmlDeviceGetHandleByIndex, range(library.nvmlDeviceGetCount()))
        return library.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS in map(library.nvmlDeviceGetComputeMode, cards)
    return False


def _list_steps(asked: Sequence[Step]) -> Iterator[str]:
    for step in asked:
        yield f"{step.cap_s:4.0f} s  {step.name}: {step.value}"
    essential_s, all_s = (sum(step.cap_s for step in asked if step.essential or every) for every in (False, True))
    yield f"{essential_s / 60:.1f} min at most for what the first call must do, {all_s / 60:.1f} min for all"


@contextlib.contextmanager
def _delay_interrupt() -> Iterator[None]:
    """Let the block end before Ctrl-C takes effect; an import that is cut short could not be repeated."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt


def _find_family(pid: int) -> list[psutil.Process]:
    """A process and all that it started; none once it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    return []


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
