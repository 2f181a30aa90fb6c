"""What a session on a rented accelerator does, the most telling first: each step a command with the time it may take.

Caps are for one H100 or better and 16 cores; a step that does not end within its cap is ended, and what it measured
until then is kept. On a CPU alone the same list is shorter: one thread stands for the accelerator.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.question.models import boosting

PYTHON = sys.executable


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command of a session.

    Attributes:
        name: unique; what a state that is resumed knows it by.
        command: as a list of words.
        cap_s: seconds after which it is ended.
        value: what it shows, for the report.
    """

    name: str
    command: tuple[str, ...]
    cap_s: float
    value: str


def steps(device: str, *, store: Path, junit: Path) -> list[Step]:
    """Everything that is to be done on a device, in order.

    Args:
        device: `cuda:0`, `xpu:0`, `mps`, or `cpu` where there is nothing else.
        store: folder that rows and exhibits go to.
        junit: file for what the tests marked `gpu` did.
    """
    if device == "cpu":
        return list(_on_a_cpu(store, junit))
    return [
        *_first_minutes(device, store, junit),
        *_sweeps(device, store),
        *_full_runs(device, store),
        *_exhibits(device, store),
        *_adaptive(device, store),
        *_compiled(device, store),
    ]


def _first_minutes(device: str, store: Path, junit: Path) -> Iterator[Step]:
    """What decides whether the rest is worth its time."""
    both = f"cpu,{device}"
    yield _step("facts", _program("tests.gpu.facts"), 60, "which machine this is")
    for kind in ("fully connected", "convolution"):
        first_use = _program("core.measure.startup", device, "--layers", kind)
        yield _step(
            f"first use, {kind}", first_use, 30, "driver and context, libraries, in a process that used nothing before"
        )
    yield _step("floors", _program("tests.gpu.floors", "--device", device), 45, "shortest kernel, bandwidth")
    lanes = f"{both},{device}+graph10" if device.startswith("cuda") else both
    yield _run("first run", store, "--preset", "disc", "--depth", "8", "--devices", lanes, budget_s=40, more_s=60)
    yield _step("tests", _tests(junit), 150, "tests marked gpu")
    yield _step("busy time", _program("tests.benchmarks.busy_time", "--device", device), 60, "ours beside the profiler")
    grid = ("--axis", "batch_size=16,32,64,128,256", "--axis", "hidden_size=4,8,16,32,64,128")
    small = ("--dataset", "digits", *grid, "--point-budget", "2", "--pairs", "2", "--devices", f"cpu@1,{device}")
    yield _sweep("thirty small runs", store, *small, budget_s=80)
    length = _program("tests.benchmarks.block_length", "--device", device, "--repeats", "3")
    yield _step("block length", length, 140, "block and lead-in, after the device idled")
    yield from _own(device, store)
    yield from _threads(store)


def _own(device: str, store: Path) -> Iterator[Step]:
    """A training of one's own, and whether causes planted in a loop are named with their share."""
    own = str(Path(__file__).parents[2] / "examples" / "mlp_images.py")
    asked = ("--training", f"{own}:build", "--size", "512", "--devices", f"cpu,{device}")
    yield _run("training of one's own", store, *asked, budget_s=10)
    planted = _program("tests.benchmarks.planted_causes", "--device", device, "--seconds", "1")
    yield _step("planted causes", planted, 90, "each named first, its share within 10 points")


def _threads(store: Path) -> Iterator[Step]:
    """The CPU with 1, 2, 4, … threads up to all of them, at three sizes."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = sorted({*(2**power for power in range(usable.bit_length()) if 2**power <= usable), usable})
    devices = ",".join(f"cpu@{count}" for count in counts)
    for size in (32, 256, 2048):
        asked = ("--dataset", "signal", "--hidden-size", str(size), "--devices", devices)
        yield _run(f"threads at {size}", store, *asked, budget_s=15)


def _sweeps(device: str, store: Path) -> Iterator[Step]:
    """The axes of the tutorials whose data set is here, plain steps and lanes in turns."""
    lanes = f"{device}+graph10,{device}+graph10+fused" if device.startswith("cuda") else f"{device}+foreach"
    devices = f"cpu@1,cpu,{device},{lanes}"
    for preset, dataset in (
        ("disc", "disc"),
        ("signal", "signal"),
        ("mnist-linear", "mnist"),
        ("fashion-cnn", "fashion-mnist"),
    ):
        if _there(dataset):
            asked = ("--preset", preset, "--devices", devices, "--point-budget", "12", "--pairs", "6")
            yield _sweep(f"sweep of {preset}", store, *asked, budget_s=130)


def _full_runs(device: str, store: Path) -> Iterator[Step]:
    both = ("--devices", f"cpu,{device}")
    idled = _program("tests.benchmarks.block_length", "--device", device, "--repeats", "2", "--idle")
    yield _step("lead-in after idling", idled, 125, "how long a lead-in must be, by how long the device idled")
    for depth in (2, 6, 8, 10, 12):
        yield _run(f"disc at depth {depth}", store, "--preset", "disc", "--depth", str(depth), *both, budget_s=15)
    for neurons in (10, 100, 1000, 4000):
        asked = ("--preset", "signal", "--data-path", "resident", "--hidden-size", str(neurons), *both)
        yield _run(f"signal at {neurons}", store, *asked, budget_s=15)
    yield _run("digits", store, "--dataset", "digits", *both, budget_s=25)
    for model in ("lstm", "lstm-cells", "transformer"):
        lanes = f"cpu,{device},{device}+graph10" if device.startswith("cuda") else f"cpu,{device}"
        asked = ("--dataset", "token-order", "--model", model, "--devices", lanes)
        yield _run(f"{model} on tokens", store, *asked, budget_s=15)
    for preset, dataset in (("mnist-linear", "mnist"), ("fashion-cnn", "fashion-mnist")):
        if _there(dataset):
            yield _run(preset, store, "--preset", preset, *both, budget_s=40)


def _exhibits(device: str, store: Path) -> Iterator[Step]:
    """What a visitor without an accelerator is shown as recorded."""
    both = ("--devices", f"cpu,{device}")
    large = ("--samples", "500000", "--model", "mlp", "--hidden-size", "4096", "--depth", "2", "--batch-size", "4096")
    yield _lesson("moving", "moving", store, *both)
    yield _lesson("first step", "first_step", store, "--dataset", "digits", *both)
    for preset in ("disc", "signal"):
        yield _lesson(f"clock of {preset}", "clock", store, "--preset", preset, "--budget", "60", *both)
    asked = ("--dataset", "disc", *large, "--epochs", "1", "--budget", "60", "--devices", device)
    yield _lesson("clock without a drain", "clock", store, *asked)


def _adaptive(device: str, store: Path) -> Iterator[Step]:
    both = ("--devices", f"cpu,{device}", "--adaptive")
    small = ("--preset", "disc", "--axis", "parameters", "--range", "100:20000000", *both)
    yield _sweep("adaptive, disc by parameters", store, *small, budget_s=150)
    wide = ("--preset", "signal", "--data-path", "resident", "--axis", "hidden_size", "--range", "8:8192", *both)
    yield _sweep("adaptive, signal by hidden size", store, *wide, budget_s=150)
    if device.startswith("cuda") and not boosting.explain_missing_library("xgboost"):
        trees = ("--dataset", "signal", "--model", "xgboost", "--axis", "samples", "--range", "1000:1000000", *both)
        yield _sweep("adaptive, xgboost by rows", store, *trees, budget_s=90)


def _compiled(device: str, store: Path) -> Iterator[Step]:
    """Last: compiling takes long, and needs a compiler that may not be there."""
    devices = f"cpu,cpu+compiled10,{device},{device}+compiled10"
    yield _run("compiled", store, "--preset", "disc", "--depth", "8", "--devices", devices, budget_s=40, more_s=120)


def _on_a_cpu(store: Path, junit: Path) -> Iterator[Step]:
    """The same kinds of step, short, so that the session itself can be tried where there is no accelerator."""
    both = ("--dataset", "digits", "--devices", "cpu@1,cpu")
    yield _step("facts", _program("tests.gpu.facts"), 120, "which machine this is")
    yield _run("first run", store, *both, "--epochs", "1", budget_s=4, more_s=120)
    yield _lesson("first step", "first_step", store, *both, cap_s=120)
    yield _sweep("small runs", store, *both, "--axis", "hidden_size=4,8", "--pairs", "2", budget_s=8, more_s=120)
    yield _step("floors", _program("tests.gpu.floors", "--device", "cpu"), 120, "shortest kernel, bandwidth")
    yield _step("tests", _tests(junit), 120, "tests marked gpu, which say why they skip")


def _run(name: str, store: Path, *asked: str, budget_s: float, more_s: float = 30) -> Step:
    command = (*_program("core", "run"), *asked, "--budget", f"{budget_s:g}", "--store", str(store), "--fresh")
    return _step(name, command, budget_s + more_s, "rows")


def _sweep(name: str, store: Path, *asked: str, budget_s: float, more_s: float = 30) -> Step:
    """A sweep goes on where it was when it is asked for again."""
    command = (*_program("core", "sweep"), *asked, "--budget", f"{budget_s:g}", "--store", str(store))
    return _step(name, command, budget_s + more_s, "rows, and from which size on the accelerator wins")


def _lesson(name: str, kind: str, store: Path, *asked: str, cap_s: float = 90) -> Step:
    return _step(name, (*_program("core", "lesson"), kind, *asked, "--store", str(store)), cap_s, "an exhibit")


def _tests(junit: Path) -> tuple[str, ...]:
    return _program("pytest", "tests/gpu", "-m", "gpu", "-v", "-p", "no:cacheprovider", f"--junitxml={junit}")


def _program(module: str, *words: str) -> tuple[str, ...]:
    return (PYTHON, "-m", module, *words)


def _step(name: str, command: tuple[str, ...], cap_s: float, value: str) -> Step:
    return Step(name=name, command=command, cap_s=cap_s, value=value)


def _there(dataset: str) -> bool:
    """Whether a data set is here; nothing is downloaded in a session that is paid by the minute."""
    from core.measure import datasets  # loads torch

    loader = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}.get(dataset)
    return loader is None or (Path(datasets.DATASETS_FOLDER) / loader / "raw").is_dir()
