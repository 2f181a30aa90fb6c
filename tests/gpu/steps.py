"""What a session on a rented accelerator does, the most telling first: each step a command with the time it may take.

Caps are for one H100 or better and 16 cores; a step that does not end within its cap is ended, and what it measured
until then is kept. The essential steps fit into one call of `CALL_S` seconds and all steps into three, even if each
takes its whole cap. On a CPU alone the same list is shorter: one thread stands for the accelerator.
"""

import dataclasses
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.question.models import families

PYTHON = sys.executable

CALL_S = 560.0
"""Seconds of one call of the session."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command of a session.

    Attributes:
        name: unique; what a state that is resumed knows it by.
        command: as a list of words.
        cap_s: seconds after which it is ended.
        value: what it shows, for the report.
        essential: whether the first call is to do it.
    """

    name: str
    command: tuple[str, ...]
    cap_s: float
    value: str
    essential: bool = False


def steps(
    device: str, *, store: Path, logs: Path, accelerators: Mapping[str, Collection[str]] | None = None
) -> list[Step]:
    """Everything that is to be done on a device, in order.

    Args:
        device: `cuda:0`, `xpu:0`, `mps`, or `cpu` where there is nothing else.
        store: folder that rows and exhibits go to.
        logs: folder for what the tests marked `gpu` did.
        accelerators: of this machine, each with the lanes that it refuses.
    """
    if device == "cpu":
        return [dataclasses.replace(step, essential=True) for step in _on_a_cpu(store, logs)]
    seen = dict(accelerators or {})
    return [
        *(dataclasses.replace(step, essential=True) for step in _first_call(device, store, logs)),
        *_exhibits(device, store),
        *_predictions(device, store),
        *_checks(device, store, logs),
        *_trainings(device, store, seen),
        _repeat(3, store, f"cpu,{device}"),
        *_adaptive(device, store),
        *_compiled(device, store, logs),
    ]


def _first_call(device: str, store: Path, logs: Path) -> Iterator[Step]:
    """What decides whether the rest is worth its time: the instruments first and alone, then one run of each kind."""
    both = f"cpu,{device}"
    yield _step("facts", _program("tests.gpu.facts"), 20, "which machine this is")
    yield _tests("instruments", logs, "test_instruments.py", cap_s=60, value="timer, drain, strict fp32, NVML")
    for kind in ("fully connected", "convolution"):
        first_use = _program("core.measure.startup", device, "--layers", kind)
        yield _step(
            f"first use, {kind}", first_use, 25, "driver and context, libraries, in a process that used nothing before"
        )
    yield _step("floors", _program("tests.gpu.floors", "--device", device), 20, "shortest kernel, bandwidth")
    lanes = f"{both},{device}+graph10" if device.startswith("cuda") else both
    yield _run("first run", store, *DISC, "--devices", lanes, budget_s=30, more_s=40)
    bare = _program("tests.benchmarks.bare_loop", "8", device)
    yield _step("untouched script", bare, 25, "seconds per step of the first run's training, without Crossover")
    yield _step("busy time", _program("tests.benchmarks.busy_time", "--device", device), 45, "ours beside the profiler")
    own = str(Path(__file__).parents[2] / "examples" / "mlp_images.py")
    asked = ("--training", f"{own}:build", "--size", "512", "--devices", both)
    yield _run("custom training script", store, *asked, budget_s=10, more_s=20)
    yield _twelve_sizes("T1", device, store, *DISC, axis="depth", values=tuple(range(2, 14)))
    yield _repeat(1, store, both)


def _predictions(device: str, store: Path) -> Iterator[Step]:
    """T2, T4 and an LSTM at twelve sizes, eager and graph, with this host's CPU: what predicts other cards."""
    resident = ("--preset", "signal", "--data-path", "resident")
    neurons = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 8_000)
    yield _twelve_sizes("T2", device, store, *resident, axis="hidden_size", values=neurons)
    lstm = ("--dataset", "token-order", "--model", "lstm", "--batch-size", "64")
    widths = (8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1_024)
    yield _twelve_sizes("LSTM", device, store, *lstm, axis="hidden_size", values=widths)
    images = ("--dataset", "fashion-mnist", "--model", "cnn", "--data-path", "resident")
    batches = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 4_000, 8_000, 12_000, 20_000)
    if not _is_there("fashion-mnist"):  # digits stand for it: 1,257 images at most
        images, batches = (
            ("--dataset", "digits", "--model", "cnn"),
            (4, 8, 12, 16, 24, 32, 64, 96, 128, 256, 512, 1_024),
        )
    yield _twelve_sizes("T4", device, store, *images, axis="batch_size", values=batches)


def _checks(device: str, store: Path, logs: Path) -> Iterator[Step]:
    """The other tests but for those that compile, planted causes, and the second of three repeats."""
    yield _tests("other tests", logs, "test_on_an_accelerator.py", cap_s=80, value="runs, lessons, out of memory")
    yield _tests("lanes", logs, "test_lanes.py", "-k", "not compiled", cap_s=80, value="lanes that are not compiled")
    planted = _program("tests.benchmarks.planted_causes", "--device", device, "--seconds", "1")
    yield _step("planted causes", planted, 50, "each named first, its share within 10 points")
    yield _repeat(2, store, f"cpu,{device}")


def _trainings(device: str, store: Path, accelerators: Mapping[str, Collection[str]]) -> Iterator[Step]:
    """One training of each other kind: a CNN, lower precision, boosted trees, two GPUs, and threads of the CPU."""
    both, refused = f"cpu,{device}", accelerators.get(device, ())
    timed = "" if "benchmark" in refused else f",{device}+benchmark"
    yield _run("cnn", store, "--dataset", "digits", "--model", "cnn", "--devices", both + timed, budget_s=8, more_s=37)
    if lower := [lane for lane in ("tf32", "bf16", "fp16") if lane not in refused]:
        devices = ",".join((device, *(f"{device}+{lane}" for lane in lower)))
        large = ("--dataset", "signal", "--hidden-size", "2048", "--batch-size", "2048")
        yield _run("lower precision", store, *large, "--devices", devices, budget_s=10, more_s=55)
    if device.startswith("cuda") and not families.explain_missing_library("lightgbm"):
        trees = ("--dataset", "signal", "--model", "lightgbm", "--devices", both)
        yield _run("lightgbm", store, *trees, budget_s=10, more_s=20)
    if others := [name for name in accelerators if name != device]:
        yield _run("two GPUs", store, *DISC, "--devices", f"{both},{others[0]}", budget_s=8, more_s=17)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = sorted({*(2**power for power in range(usable.bit_length()) if 2**power <= usable), usable})[-MOST_COUNTS:]
    for size in (32, 1024):
        asked = ("--dataset", "signal", "--hidden-size", str(size), "--devices", ",".join(f"cpu@{n}" for n in counts))
        yield _run(f"threads at {size}", store, *asked, budget_s=8, more_s=17)


def _exhibits(device: str, store: Path) -> Iterator[Step]:
    """What a visitor without an accelerator is shown as recorded."""
    both = ("--devices", f"cpu,{device}")
    large = ("--samples", "500000", "--model", "mlp", "--hidden-size", "4096", "--depth", "2", "--batch-size", "4096")
    yield _lesson("moving", "moving", store, *both, cap_s=15)
    yield _lesson("first step", "first_step", store, "--dataset", "digits", *both, cap_s=15)
    yield _lesson("clock of disc", "clock", store, "--preset", "disc", "--budget", "30", *both, cap_s=45)
    asked = ("--dataset", "disc", *large, "--epochs", "1", "--budget", "30", "--devices", device)
    yield _lesson("clock without a drain", "clock", store, *asked, cap_s=45)


def _adaptive(device: str, store: Path) -> Iterator[Step]:
    both = ("--devices", f"cpu,{device}", "--adaptive")
    small = ("--preset", "disc", "--axis", "parameters", "--range", "100:20000000", *both)
    yield _sweep("adaptive, disc by parameters", store, *small, budget_s=60, more_s=20)
    length = _program("tests.benchmarks.block_length", "--device", device, "--repeats", "2", "--idle")
    yield _step("lead-in after idling", length, 60, "how long a lead-in must be, by how long the device idled")


def _compiled(device: str, store: Path, logs: Path) -> Iterator[Step]:
    """Last: compiling takes long, and needs a compiler that may not be there."""
    devices = f"cpu,{device},{device}+compiled10"
    yield _run("compiled", store, *DISC, "--devices", devices, budget_s=15, more_s=50)
    yield _tests("compiled lanes", logs, "test_lanes.py", "-k", "compiled", cap_s=65, value="lanes that are compiled")


def _on_a_cpu(store: Path, logs: Path) -> Iterator[Step]:
    """The same kinds of step, short, so that the session itself can be tried where there is no accelerator."""
    both = ("--dataset", "digits", "--devices", "cpu@1,cpu@2")
    yield _step("facts", _program("tests.gpu.facts"), 60, "which machine this is")
    yield _tests(
        "instruments", logs, "test_instruments.py", cap_s=60, value="tests marked gpu, which say why they skip"
    )
    yield _run("first run", store, *both, "--epochs", "1", budget_s=4, more_s=90)
    yield _step("untouched script", _program("tests.benchmarks.bare_loop", "3", "cpu"), 40, "without Crossover")
    yield _lesson("first step", "first_step", store, *both, cap_s=90)
    yield _sweep("small runs", store, *both, "--axis", "hidden_size=4,8", "--pairs", "2", budget_s=8, more_s=90)
    yield _step("floors", _program("tests.gpu.floors", "--device", "cpu"), 60, "shortest kernel, bandwidth")
    yield _tests("lanes", logs, "test_lanes.py", cap_s=50, value="tests marked gpu, which say why they skip")


DISC = ("--preset", "disc", "--depth", "8")
"""The training that is repeated, and that the untouched script trains too."""

MOST_COUNTS = 6
"""Thread counts that one run compares, the highest of those that there are."""


def _repeat(number: int, store: Path, devices: str) -> Step:
    """The same run as those of other numbers, minutes later: what drifts shows."""
    return _run(f"disc, repeat {number}", store, *DISC, "--devices", devices, budget_s=8, more_s=30)


def _twelve_sizes(name: str, device: str, store: Path, *asked: str, axis: str, values: tuple[int, ...]) -> Step:
    """A sweep over twelve sizes with plain steps and a recorded graph."""
    graph = f",{device}+graph10" if device.startswith("cuda") else ""
    sizes = f"{axis}={','.join(map(str, values))}"
    words = ("--axis", sizes, "--point-budget", "5", "--pairs", "3", "--devices", f"cpu,{device}{graph}")
    fixed = [word for pair in zip(asked[::2], asked[1::2], strict=True) if pair[0] != f"--{axis}" for word in pair]
    return _sweep(f"{name} at twelve sizes", store, *fixed, *words, budget_s=60, more_s=25)


def _run(name: str, store: Path, *asked: str, budget_s: float, more_s: float = 30) -> Step:
    command = (*_program("core", "run"), *asked, "--budget", f"{budget_s:g}", "--store", str(store), "--fresh")
    return _step(name, command, budget_s + more_s, "rows")


def _sweep(name: str, store: Path, *asked: str, budget_s: float, more_s: float = 30) -> Step:
    """A sweep goes on where it was when it is asked for again."""
    command = (*_program("core", "sweep"), *asked, "--budget", f"{budget_s:g}", "--store", str(store))
    return _step(name, command, budget_s + more_s, "rows, and from which size on the accelerator wins")


def _lesson(name: str, kind: str, store: Path, *asked: str, cap_s: float = 90) -> Step:
    """A lesson; as JSON, because its text needs the chart libraries."""
    command = (*_program("core", "lesson"), kind, *asked, "--store", str(store), "--json")
    return _step(name, command, cap_s, "an exhibit")


def _tests(name: str, logs: Path, file: str, *words: str, cap_s: float, value: str) -> Step:
    """The tests marked `gpu` of one file; no test is long enough for a process of its own to matter."""
    junit = f"--junitxml={logs / name}.xml"
    command = _program("pytest", f"tests/gpu/{file}", "-m", "gpu", "-v", "-n0", "-p", "no:cacheprovider", junit, *words)
    return _step(name, command, cap_s, value)


def _program(module: str, *words: str) -> tuple[str, ...]:
    return (PYTHON, "-m", module, *words)


def _step(name: str, command: tuple[str, ...], cap_s: float, value: str) -> Step:
    return Step(name=name, command=command, cap_s=cap_s, value=value)


def _is_there(dataset: str) -> bool:
    """Whether a data set is here; nothing is downloaded in a session that is paid by the minute."""
    from core.measure import datasets  # loads torch

    loader = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}.get(dataset)
    return loader is None or (Path(datasets.DATASETS_FOLDER) / loader / "raw").is_dir()
