"""Moving tensors and modules: short pieces of Python that are run here and now, with what PyTorch says to them.

What is shown is what was run. Where there is no accelerator, PyTorch's `meta` device stands for one: tensors there
have a shape and no numbers, and PyTorch refuses to mix them with others as it does for a GPU.
"""

import contextlib
import io
from dataclasses import dataclass

import torch
from torch import nn

from core.measure.lessons.stage import Stage
from core.question.demonstration import Demonstration
from core.results.exhibits.exhibit import Moving, Snippet

META = "meta"

META_NOTE = (
    "No accelerator takes part, so PyTorch's device 'meta' stands for one: its tensors have a shape and no numbers. "
    "Where tensors live and what may be mixed follows the same rules; the messages are those that "
    "PyTorch raised here, and on a GPU they name the GPU."
)

MAX_OUTPUT = 2_000
"""Characters of an output or a message that are kept; CUDA's messages go on with advice on debugging."""


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """Code to be run, in which `DEVICE` stands for the name of the device in quotation marks.

    Attributes:
        title: what is asked.
        code: the lines.
        agnostic: whether it looks for a device itself, and needs the numbers that the meta device does not have.
    """

    title: str
    code: str
    agnostic: bool = False


PIECES = (
    _Piece(
        title="What is there?",
        code="""\
print("an accelerator is seen:", torch.accelerator.is_available())
print("CUDA is seen:", torch.cuda.is_available())
print("a new tensor lives on:", torch.ones(2).device)""",
    ),
    _Piece(
        title="Does .to() move a tensor?",
        code="""\
here = torch.ones(3)
there = here.to(DEVICE)
print("here:", here.device)
print("there:", there.device)""",
    ),
    _Piece(
        title="Does .to() copy if there is nothing to move?",
        code="""\
here = torch.ones(3)
print("the same object:", here.to("cpu") is here)""",
    ),
    _Piece(
        title="Does .to() move a module?",
        code="""\
layer = nn.Linear(2, 1)
moved = layer.to(DEVICE)
print("the same object:", moved is layer)
print("its weight lives on:", layer.weight.device)""",
    ),
    _Piece(
        title="Has a module a device?",
        code="""\
layer = nn.Linear(2, 1)
print(layer.device)""",
    ),
    _Piece(
        title="Its parameters have",
        code="""\
network = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).to(DEVICE)
print({str(parameter.device) for parameter in network.parameters()})""",
    ),
    _Piece(
        title="A tensor here plus a tensor there",
        code="""\
here, there = torch.ones(3), torch.ones(3, device=DEVICE)
print(here + there)""",
    ),
    _Piece(
        title="A tensor there plus a tensor here",
        code="""\
here, there = torch.ones(3), torch.ones(3, device=DEVICE)
print(there + here)""",
    ),
    _Piece(
        title="A network there, a sample here",
        code="""\
network, sample = nn.Linear(2, 1).to(DEVICE), torch.ones(1, 2)
print(network(sample))""",
    ),
    _Piece(
        title="A network here, a sample there",
        code="""\
network, sample = nn.Linear(2, 1), torch.ones(1, 2, device=DEVICE)
print(network(sample))""",
    ),
    _Piece(
        title="Both in one place",
        code="""\
network, sample = nn.Linear(2, 1).to(DEVICE), torch.ones(1, 2).to(DEVICE)
print(network(sample).device)""",
    ),
    _Piece(
        title="What is the 0 in cuda:0?",
        code="""\
print(torch.device("cuda:0").type, torch.device("cuda:0").index)
print(torch.device("cuda").type, torch.device("cuda").index)""",
    ),
    _Piece(
        title="Code that runs on any machine",
        code="""\
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
network, sample = nn.Linear(2, 1).to(device), torch.ones(1, 2).to(device)
print(network(sample).device.type == device.type)""",
        agnostic=True,
    ),
    _Piece(
        title="A loss as a number, wherever it lives",
        code="""\
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
loss = nn.functional.mse_loss(nn.Linear(2, 1).to(device)(torch.ones(1, 2).to(device)), torch.ones(1, 1).to(device))
print("with .item():", type(loss.item()).__name__)
loss.numpy()""",
        agnostic=True,
    ),
)


def run(demonstration: Demonstration, stage: Stage) -> Moving:
    """Run every piece, on the first contender that is no CPU or on `meta`."""
    accelerators = [contender.device for contender in demonstration.contenders if not contender.on_host]
    device = accelerators[0] if accelerators else META
    snippets = []
    for done, piece in enumerate(PIECES):
        stage.tell(f"running: {piece.title}", done=done, total=len(PIECES))
        snippets.append(_run(piece, device))
    return Moving(snippets=tuple(snippets), notes=() if accelerators else (META_NOTE,))


def _run(piece: _Piece, device: str) -> Snippet:
    """Run the lines as they are shown; what they print and what they raise is kept."""
    found = torch.accelerator.current_accelerator(check_available=True)
    shown_on = str(found or "cpu") if piece.agnostic else device
    code, printed, error = piece.code.replace("DEVICE", repr(device).replace("'", '"')), io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, piece.title, "exec"), {"torch": torch, "nn": nn})
        except (RuntimeError, TypeError, AttributeError, NotImplementedError, ValueError) as raised:
            error = f"{type(raised).__name__}: {raised}"
    output = printed.getvalue().rstrip("\n")
    return Snippet(title=piece.title, code=code, output=output[:MAX_OUTPUT], error=error[:MAX_OUTPUT], device=shown_on)
