"""A refusal as people read it: a control by its name on the page, and what it offers by the names of that.

On the command line the words stay as one types them.
"""

import functools
from collections.abc import Callable

from ..errors import CrossoverError, InvalidValue
from .fields import FIELDS, value_label
from .presets import PRESETS

CONTROLS: dict[str, str] = {
    "adaptive": "Adaptive search",
    "also": "Vary also",
    "axes": "Along",
    "axis": "Along",
    "contenders": "Devices",
    "device": "Devices",
    "devices": "Devices",
    "lesson": "Lesson",
    "micro_batch": "Pieces of a batch",
    "nickname": "Nickname",
    "preset": "Preset",
    "recipes": "Clocks",
    "recorded": "Recorded accelerator",
    "scale": "Scale",
    "spread": "Spread",
    "tutorial": "Tutorial",
    **dict.fromkeys(("lane", "lanes", "execution", "precision", "optimizer", "memory_format", "host_memory"), "Lanes"),
    "steps_per_call": "Steps a call",
}
"""How pages call the control of a value that is no field."""

_TYPED = {"axis": "Axis", "axes": "Axis"}
"""Where the option has another name than the control."""

_OPTIONS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("adaptive", "also", "axis"), lambda axis: FIELDS[axis].label),
    **dict.fromkeys(("preset", "tutorial"), lambda name: PRESETS[name].title),
    "scale": str.capitalize,
}
"""How controls that are no fields show their words; those of fields say it themselves."""


def format_page_error(error: CrossoverError) -> str:
    """What a page says of an error."""
    if not isinstance(error, InvalidValue):
        return str(error)
    return error.format_message(
        control(error.field), _OPTIONS.get(error.field, functools.partial(value_label, error.field))
    )


def format_command_error(error: CrossoverError) -> str:
    """What the command line says of it, with words to be typed as they are."""
    if not isinstance(error, InvalidValue):
        return str(error)
    return error.format_message(_TYPED.get(error.field) or control(error.field))


def control(field: str) -> str:
    """The name of a control for people, also of the ends of its range.

    What has no control, as the keys of a file, goes by its own name.
    """
    bare = field.removesuffix("_range").removesuffix("_values")
    return FIELDS[bare].name if bare in FIELDS else CONTROLS.get(bare, field)
