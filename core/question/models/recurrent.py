"""Families of LSTM and GRU, each as torch's fused layers and as a loop of cells, which compute the same.

With the fused layers the whole sequence is one call, which cuDNN makes a few kernels of; a loop launches every cell of
every step by itself. The weights are the same from the same seed.
"""

from collections.abc import Mapping
from typing import Literal

from core.question.models.layers import FLOAT_BYTES, Layer, linear
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


def recurrent(kind: Kind, *, fused: bool, inputs: int, hidden: int, depth: int, steps: int) -> Layer:
    """Recurrent layers on top of each other, (batch, steps, inputs) → (batch, hidden): what the last step gives."""
    gates = GATES[kind] * hidden
    taken_in = inputs + (2 * depth - 1) * hidden  # by a step, of inputs and states of all layers together
    products = steps * 2 * gates * taken_in
    states = steps * KEPT[kind, fused] + (kind == "GRU")  # of every step, and in a GRU those before the first
    return Layer(
        module=("FusedLayers" if fused else "CellLoop", (kind, inputs, hidden, depth)),
        parameters=gates * (taken_in + 2 * depth),  # with a bias for the input and one for the state, as torch has it
        tensors=4 * depth,
        flops=3 * products - depth * 2 * gates * hidden,  # states before the first step need no gradient
        input_flops=steps * 2 * gates * inputs,
        saved_bytes=FLOAT_BYTES * states * depth * hidden,
    )


def _family(name: str, title: str, summary: str, kind: Kind, *, fused: bool) -> Family:
    def layers(shape: Shape, classes: int, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
        views, (steps, features) = as_sequence(shape)
        hidden = sizes["hidden_size"]
        cells = recurrent(kind, fused=fused, inputs=features, hidden=hidden, depth=sizes["depth"], steps=steps)
        return (*views, cells, linear(hidden, classes))

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
