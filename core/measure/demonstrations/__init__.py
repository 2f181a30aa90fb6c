"""From a demonstration to its exhibit: find the devices, run the lesson, and date the result.

As in `core.measure.trial`, only files of the data set are read or written here.

Two short demonstrations are here too: moving tensors and modules, and how far two contenders differ after one step. All
code shown was run. Without an accelerator, PyTorch's `meta` device is used, whose tensors have a shape but no values.
After one step, rounding explains differences of 1e-7 to 1e-5; more than 1e-3 means a bug or another precision.
"""

import contextlib
import io
import math
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import OutOfMemory
from ...question.demonstrations import Demonstration, Kind
from ...question.experiment import Contender, Point
from ...results import environment
from ...results.exhibits import Content, Exhibit, ExhibitContender, FirstStep, Moving, Snippet
from .. import datasets, devices, networks, preflight
from ..datasets import Split
from ..trial import Hooks
from . import clock
from .clock import Stage, Stopped

META = "meta"

META_NOTE = (
    "There is no accelerator here, so PyTorch's device 'meta' represents one: its tensors have a shape and no numbers. "
    "The same rules decide where tensors live and which may be combined. The messages are from PyTorch here; "
    "on a GPU they name the GPU."
)

MAX_OUTPUT = 2_000
"""Maximum number of stored characters of an output or a message; CUDA's messages end with advice on debugging."""


PIECES = {
    "What is there?": """\
print("an accelerator is seen:", torch.accelerator.is_available())
print("CUDA is seen:", torch.cuda.is_available())
print("a new tensor lives on:", torch.ones(2).device)""",
    "Does .to() move a tensor?": """\
here = torch.ones(3)
there = here.to(DEVICE)
print("here:", here.device)
print("there:", there.device)""",
    "Does .to() copy if there is nothing to move?": """\
here = torch.ones(3)
print("the same object:", here.to("cpu") is here)""",
    "Does .to() move a module?": """\
layer = nn.Linear(2, 1)
moved = layer.to(DEVICE)
print("the same object:", moved is layer)
print("its weight lives on:", layer.weight.device)""",
    "Does a module have a device?": """\
layer = nn.Linear(2, 1)
print(layer.device)""",
    "Its parameters have": """\
network = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).to(DEVICE)
print({str(parameter.device) for parameter in network.parameters()})""",
    "A tensor here plus a tensor there": """\
here, there = torch.ones(3), torch.ones(3, device=DEVICE)
print(here + there)""",
    "A tensor there plus a tensor here": """\
here, there = torch.ones(3), torch.ones(3, device=DEVICE)
print(there + here)""",
    "A network there, a sample here": """\
network, sample = nn.Linear(2, 1).to(DEVICE), torch.ones(1, 2)
print(network(sample))""",
    "A network here, a sample there": """\
network, sample = nn.Linear(2, 1), torch.ones(1, 2, device=DEVICE)
print(network(sample))""",
    "Both in one place": """\
network, sample = nn.Linear(2, 1).to(DEVICE), torch.ones(1, 2).to(DEVICE)
print(network(sample).device)""",
    "What is the 0 in cuda:0?": """\
print(torch.device("cuda:0").type, torch.device("cuda:0").index)
print(torch.device("cuda").type, torch.device("cuda").index)""",
    "Code that runs on any machine": """\
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
network, sample = nn.Linear(2, 1).to(device), torch.ones(1, 2).to(device)
print(network(sample).device.type == device.type)""",
    "A loss as a number, wherever it lives": """\
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
loss = nn.functional.mse_loss(nn.Linear(2, 1).to(device)(torch.ones(1, 2).to(device)), torch.ones(1, 1).to(device))
print("with .item():", type(loss.item()).__name__)
loss.numpy()""",
}
"""Question → code that answers it; `DEVICE` is replaced by the quoted name of the device."""

LOOKS_ITSELF = "torch.accelerator.current_accelerator()"
"""Expression with which code finds a device; it needs values, which the meta device does not have."""


def run_moving_lesson(demonstration: Demonstration, stage: Stage) -> Moving:
    """Run all code on the first contender other than a CPU, or on `meta`."""
    accelerators = [contender.device for contender in demonstration.contenders if not contender.on_host]
    device = accelerators[0] if accelerators else META
    snippets = []
    for done, (title, code) in enumerate(PIECES.items()):
        stage.tell(f"running: {title}", done=done, total=len(PIECES))
        snippets.append(_run_snippet(title, code, device))
    return Moving(snippets=tuple(snippets), notes=() if accelerators else (META_NOTE,))


def _run_snippet(title: str, lines: str, device: str) -> Snippet:
    """Run the lines as displayed, and return their output and error."""
    found = torch.accelerator.current_accelerator(check_available=True)
    shown_on = str(found or "cpu") if LOOKS_ITSELF in lines else device
    code, printed, error = lines.replace("DEVICE", repr(device).replace("'", '"')), io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, title, "exec"), {"torch": torch, "nn": nn})
        except (RuntimeError, TypeError, AttributeError, NotImplementedError, ValueError) as raised:
            error = f"{type(raised).__name__}: {raised}"
    output = printed.getvalue().rstrip("\n")
    return Snippet(title=title, code=code, output=output[:MAX_OUTPUT], error=error[:MAX_OUTPUT], device=shown_on)


def run_first_step_lesson(demonstration: Demonstration, stage: Stage) -> FirstStep:
    """Train the first step on both contenders and compare loss and gradients.

    Raises:
        DatasetUnavailable: the files of the data set are missing.
    """
    point, (one, other) = demonstration.point, demonstration.contenders
    stage.tell("loading data", total=2)
    data = datasets.load_point_data(point)
    first = datasets.batch_order(point, 0)[: point.batch_size]
    batch = Split(samples=data.train.samples[first], labels=data.train.labels[first])
    losses, gradients = [], []
    for done, contender in enumerate((one, other)):
        stage.tell(f"taking the first step on {contender.spoken}", done=done, total=2)
        stage.use_threads(contender)
        loss, gradient = _step(point, contender, batch)
        losses.append(loss)
        gradients.append(gradient)
    pairs = zip(gradients[0].items(), gradients[1].values(), strict=True)
    return FirstStep(
        parameters=tuple((name, relative(mine, theirs)) for (name, mine), theirs in pairs),
        loss_difference=relative(*(torch.tensor([loss], dtype=torch.float64) for loss in losses)),
        contenders=(str(one), str(other)),
    )


def relative(one: Tensor, other: Tensor) -> float:
    """Return the norm of the difference relative to the norm of `one`; 0 if equal, 1 if it is not a number."""
    difference, length = float((other - one).norm()), float(one.norm())
    if difference == 0:
        return 0.0
    return difference / length if length and math.isfinite(difference / length) else 1.0


def _step(point: Point, contender: Contender, batch: Split) -> tuple[float, dict[str, Tensor]]:
    """Return loss and gradients of the first step, in float64 on the host."""
    device = devices.open_device(contender.device).torch
    network, placed = networks.build(point.network, point.seed).to(device), batch.to(device)
    loss = functional.cross_entropy(network(placed.samples), placed.labels)
    loss.backward()
    gradients = {}
    layers = [layer for layer in network if any(True for _ in layer.parameters())]
    for number, layer in enumerate(layers, start=1):
        for name, parameter in layer.named_parameters():
            gradient = parameter.grad
            assert gradient is not None
            gradients[f"layer {number} {name}"] = gradient.cpu().double()
    return float(loss.item()), gradients


LESSON_RUNNERS: dict[Kind, Callable[[Demonstration, Stage], Content]] = {
    "clock": clock.run_clock_lesson,
    "moving": run_moving_lesson,
    "first_step": run_first_step_lesson,
}


def run_demonstration(demonstration: Demonstration, *, hooks: Hooks) -> Exhibit | None:
    """Run one demonstration on this machine, and report progress to `hooks`, which can stop it.

    Returns:
        The exhibit; None if it was stopped.

    Raises:
        DeviceUnavailable: a contender's device is not on this machine; nothing was run.
        DatasetUnavailable: the files of the data set are missing.
        InvalidValue: more threads or samples were requested than there are.
        OutOfMemory: the training does not fit into the memory of a device.
    """
    _require(demonstration)
    devices.use_strict_fp32()
    devices.set_memory_retention(keep=False)
    stage, begun = Stage(demonstration=demonstration, hooks=hooks), datetime.now(UTC)
    try:
        content = LESSON_RUNNERS[demonstration.kind](demonstration, stage)
    except Stopped:
        return None
    except Exception as error:
        if isinstance(error, OutOfMemory) or not devices.is_out_of_memory(error):
            raise
        message = "The training does not fit into the memory of a device. Try a smaller model or batch."
        raise OutOfMemory(message) from error
    finally:
        for contender in demonstration.contenders:
            devices.open_device(contender.device).release()
    known = environment.read_environment()
    return Exhibit(
        id=uuid.uuid4().hex[:12],
        demonstration=demonstration,
        measured_at=begun.isoformat(timespec="milliseconds"),
        cpu_name=known.cpu_name,
        machine_id=known.machine_id,
        torch_version=known.torch_version,
        app_commit=known.app_commit,
        participants=tuple(_participant(contender, stage) for contender in demonstration.contenders),
        content=content,
    )


def _require(demonstration: Demonstration) -> None:
    for contender in demonstration.contenders:
        devices.find(contender.device)
        preflight.require_usable(contender.threads)


def _participant(contender: Contender, stage: Stage) -> ExhibitContender:
    info = devices.find(contender.device)
    return ExhibitContender(
        contender=str(contender),
        device=info.device,
        kind=info.kind,
        device_name=info.name,
        threads=stage.threads.get(contender, contender.threads or environment.usable_cores()),
        startup_s=devices.initialise(info.device),
    )
