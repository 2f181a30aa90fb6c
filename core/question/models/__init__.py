"""Model families as data: a network is a list of layers whose cost is known before torch is imported.

Parameters, floating-point operations and memory follow from the layers alone, so a page can show them while a slider
moves. `core.measure.networks` turns the same list into a torch module; a test compares every figure here with torch's
own counts. Nothing here trains, times or imports torch.
"""

from .families import AXES, DOUBLING_DEPTH, FAMILIES, family, list_model_sizes, network
from .layers import FLOAT_BYTES, INDEX_BYTES, Family, Layer, Network

__all__ = [
    "AXES",
    "DOUBLING_DEPTH",
    "FAMILIES",
    "FLOAT_BYTES",
    "INDEX_BYTES",
    "Family",
    "Layer",
    "Network",
    "family",
    "list_model_sizes",
    "network",
]
