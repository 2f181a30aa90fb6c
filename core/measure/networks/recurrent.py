"""Recurrent layers over whole sequences, fused and cell by cell. Scripts that repeat a run have these very lines."""

from torch import Tensor, nn


class FusedLayers(nn.Module):
    """torch's own layers: the whole sequence in one call."""

    def __init__(self, kind: str, inputs: int, hidden: int, depth: int) -> None:
        super().__init__()
        self.layers = getattr(nn, kind)(inputs, hidden, depth, batch_first=True)

    def forward(self, sequence: Tensor) -> Tensor:
        outputs: Tensor = self.layers(sequence)[0]
        return outputs[:, -1]


class CellLoop(nn.Module):
    """The same layers with the same weights, one cell after another."""

    def __init__(self, kind: str, inputs: int, hidden: int, depth: int) -> None:
        super().__init__()
        cell = getattr(nn, f"{kind}Cell")
        self.cells = nn.ModuleList(cell(hidden if above else inputs, hidden) for above in range(depth))

    def forward(self, sequence: Tensor) -> Tensor:
        outputs = list(sequence.unbind(1))
        for cell in self.cells:
            state = None
            for step, output in enumerate(outputs):
                state = cell(output, state)
                outputs[step] = state[0] if isinstance(state, tuple) else state
        return outputs[-1]
