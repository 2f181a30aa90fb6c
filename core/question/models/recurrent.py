"""Families of LSTM and GRU, each as torch's fused layers and as a loop of cells, which compute the same.

With the fused layers the whole sequence is one call, which cuDNN makes a few kernels of; a loop launches every cell of
every step by itself. The weights are the same from the same seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.question.models.layers import FLOAT_BYTES, Layer, Linear
from core.question.models.network import Family, Shape
from core.question.models.sequences import as_sequence

Kind = Literal["LSTM", "GRU"]

GATES: dict[Kind, int] = {"LSTM": 4, "GRU": 3}
"""Products of as many gates are computed in each step."""

KEPT: dict[tuple[Kind, bool], int] = {("LSTM", True): 20, ("LSTM", False): 7, ("GRU", True): 8, ("GRU", False): 7}
"""Numbers of each neuron that a step keeps for the way back, by kind and whether it is fused: gates and states, and
what the libraries of a CPU behind the fused layers take beside them, rounded up."""

UNCOMPILED = {
    True: "torch.compile does not take in the fused layers",
    False: "torch.compile writes out every cell of every step, which takes minutes",
}
"""By whether layers are fused: why there is no compiled lane."""


@dataclass(frozen=True, kw_only=True)
class Recurrent(Layer):
    """Recurrent layers on top of each other, (batch, steps, inputs) → (batch, hidden): what the last step gives."""

    kind: Kind
    fused: bool
    inputs: int
    hidden: int
    depth: int
    steps: int

    @property
    def module(self) -> tuple[str, tuple[Any, ...]]:
        return "FusedLayers" if self.fused else "CellLoop", (self.kind, self.inputs, self.hidden, self.depth)

    @property
    def parameters(self) -> int:
        """Each gate has weights for the input and for the state, and a bias for each, as torch has it."""
        return GATES[self.kind] * self.hidden * (self._taken_in + 2 * self.depth)

    @property
    def tensors(self) -> int:
        return 4 * self.depth

    @property
    def forward_flops(self) -> int:
        return self.steps * 2 * GATES[self.kind] * self.hidden * self._taken_in

    @property
    def backward_flops(self) -> int:
        """Twice as many, but for the states before the first step, which need no gradient."""
        return 2 * self.forward_flops - self.depth * 2 * GATES[self.kind] * self.hidden**2

    @property
    def input_flops(self) -> int:
        return self.steps * 2 * GATES[self.kind] * self.hidden * self.inputs

    @property
    def saved_bytes(self) -> int:
        """What every step keeps, and in a GRU the states before the first."""
        states = self.steps * KEPT[self.kind, self.fused] + (self.kind == "GRU")
        return FLOAT_BYTES * states * self.depth * self.hidden

    @property
    def _taken_in(self) -> int:
        """Numbers that a step takes in, of inputs and states of all layers together."""
        return self.inputs + (2 * self.depth - 1) * self.hidden


def _family(name: str, title: str, summary: str, kind: Kind, *, fused: bool) -> Family:
    def layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
        views, (steps, features) = as_sequence(shape)
        hidden = sizes["hidden_size"]
        recurrent = Recurrent(kind=kind, fused=fused, inputs=features, hidden=hidden, depth=sizes["depth"], steps=steps)
        return (*views, recurrent, Linear(inputs=hidden, outputs=classes))

    return Family(
        name=name,
        title=title,
        summary=summary,
        axes=("hidden_size", "depth"),
        layers=layers,
        of_sequences=True,
        uncompiled=UNCOMPILED[fused],
    )


_LOOPED = "one cell after another in a loop, with the same weights: every step is launched by itself."

LSTM = _family("lstm", "LSTM", "Long short-term memory over a sequence, as torch's fused layers.", "LSTM", fused=True)
LSTM_CELLS = _family("lstm-cells", "LSTM by cells", f"An LSTM as {_LOOPED}", "LSTM", fused=False)
GRU = _family("gru", "GRU", "Gated recurrent units over a sequence, as torch's fused layers.", "GRU", fused=True)
GRU_CELLS = _family("gru-cells", "GRU by cells", f"A GRU as {_LOOPED}", "GRU", fused=False)
