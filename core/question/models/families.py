"""The one table of model families, and the networks that they make."""

from core.errors import InvalidValue
from core.question.models.convolutional import CNN
from core.question.models.dense import DOUBLING_MLP, LINEAR, MLP
from core.question.models.network import Family, Network, Shape

FAMILIES: dict[str, Family] = {entry.name: entry for entry in (LINEAR, MLP, DOUBLING_MLP, CNN)}

AXES = tuple(dict.fromkeys(axis for entry in FAMILIES.values() for axis in entry.axes))
"""Every size that some family is shaped by."""


def family(name: str) -> Family:
    """Facts of the model family called `name`.

    Raises:
        InvalidValue: no family has that name.
    """
    try:
        return FAMILIES[name]
    except (KeyError, TypeError):
        raise InvalidValue("model", name, f"one of {', '.join(FAMILIES)}") from None


def network(name: str, *, input_shape: Shape, classes: int, **sizes: int) -> Network:
    """The network of family `name` for one data set.

    Args:
        name: key of `FAMILIES`.
        input_shape: (features,) or (channels, height, width).
        classes: number of classes.
        sizes: those of `AXES` that shape the family; others do not matter.
    """
    layers = family(name).layers(input_shape, classes, sizes)
    return Network(input_shape=input_shape, classes=classes, layers=layers)
