"""Trainings of one's own for tests: files as somebody might bring them, and how they are asked for.

Whoever brings one knows nothing of this project, so none of them imports anything of it.
"""

import dataclasses
from pathlib import Path

from core.answer import causes
from core.files import sources
from core.question.experiment import Contender, Experiment, Point
from tests import rows

NAME = "my_training.py:build"

PLAIN = """
import torch
from torch import nn

class Own:
    def __init__(self, size, device):
        self.device = device
        self.model = nn.Sequential(nn.Linear(20, size), nn.ReLU(), nn.Linear(size, 2)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        draw = torch.Generator().manual_seed(1)
        samples, labels = torch.randn(256, 20, generator=draw), torch.randint(0, 2, (256,), generator=draw)
        self.batches = list(zip(samples.split(64), labels.split(64)))
        self.loss, self.flops = None, 12345

    def parameters(self):
        return self.model.parameters()

    def place(self, batch):
        return tuple(part.to(self.device) for part in batch)

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        loss.backward()
        self.optimizer.step()
        self.loss = loss.detach()

    def evaluate(self):
        return 0.75

def build(size, device):
    return Own(size, device)
"""
"""Gives everything that can be given."""

FUNCTION = """
import torch
def build(size, device):
    weight = torch.zeros(size, device=device, requires_grad=True)
    def step():
        loss = ((weight - 1) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(0.1 * weight.grad)
            weight.grad = None
        return loss
    return step
"""
"""Gives a function, and nothing else."""


def changed(**lines: str) -> str:
    """`PLAIN` with a line put in at the beginning of functions: `step`, `place`, `build`, `evaluate` or `__init__`."""
    text = PLAIN
    for name, line in lines.items():
        before, head, rest = text.partition(f"def {name}(")
        head_end, colon, body = rest.partition(":\n")
        indent = "    " if name == "build" else "        "
        text = f"{before}{head}{head_end}{colon}{indent}{line}\n{body}"
    return text


def asked(
    file: Path, *, size: int = 8, contenders: tuple[str, ...] = ("cpu@1", "cpu@2"), pairs: int = 2, budget_s: float = 20
) -> Experiment:
    """The question whether one or two threads train a file faster."""
    point = Point(training=f"{file.name}:build", source_hash=sources.hash_sources(file), size=size)
    return Experiment(
        point=point,
        contenders=tuple(map(Contender.parse, contenders)),
        budget_s=budget_s,
        pairs=pairs,
        folder=str(file.parent),
    )


OWN_POINT = {"training": NAME, "source_hash": "9e80da0f0ce4dcb6"}


def own_run(size=64, steps_s=(1e-3, 5e-4), **changes):
    """A run of one's own training by one thread and by two, as its rows are stored; `changes` of every row."""
    asked = {**dataclasses.asdict(Point(**OWN_POINT, size=size)), "steps_per_epoch": 1, "outcome": "timed"}
    nothing = dict.fromkeys((f"breakdown_{part}_s" for part in causes.PART_TITLES), ())
    unknown = {
        "parameters": 0,
        "flops_per_step": 0,
        "dataset_hash": OWN_POINT["source_hash"],
        "confusion": (),
        "predictions": b"",
    }
    unknown |= dict.fromkeys(("train_accuracy", "validation_accuracy", "epoch_check_s"))
    values = {**asked, **nothing, **unknown, "breakdown_step_s": (steps_s[0],) * 3, **changes}
    known = rows.run({"cpu@1": steps_s[0], "cpu@2": steps_s[1]}, run_id=f"{size:012x}", **values)
    return [dataclasses.replace(row, threads=threads) for threads, row in enumerate(known, 1)]
