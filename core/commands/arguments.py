"""Options that several commands share, and what they stand for."""

import argparse
from pathlib import Path
from typing import Any

from ..answer.result import BASES
from ..errors import CrossoverError, InvalidValue, StoreError, require_choice
from ..files import sources
from ..files.project import PROJECT
from ..question import custom, models, presets
from ..question.experiment import Point
from ..question.fields import FIELDS, TRAINING
from ..remote import local_cache
from ..results.store import RESULTS


def parse_number_option(text: str) -> float:
    """What was typed as a number, a whole one if it is; its range is the business of whoever asks."""
    try:
        return int(text) if text.strip().lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not possible; it must be a number") from None


def parse_integer_option(text: str) -> int:
    """What was typed as a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not possible; it must be a whole number") from None


def _store(text: str) -> Path:
    try:
        if not text.strip():
            raise InvalidValue("store", "", "a folder, or an address such as s3://bucket/prefix")
        return local_cache.resolve_store(text)
    except CrossoverError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("store: ")) from error


def require_store_folder(options: argparse.Namespace) -> Path:
    """The store of whoever only reads it; raises StoreError if somebody named a folder that is not there."""
    store: Path = options.store
    if store != RESULTS and not store.exists():
        raise StoreError(f"There is no folder {store}.")
    return store


_KEPT = RESULTS.relative_to(PROJECT) if RESULTS.is_relative_to(PROJECT) else RESULTS
"""The folder of results as its user would type it."""

OPTIONS: dict[str, dict[str, Any]] = {
    "training": {
        "metavar": "FILE:FUNCTION",
        "help": "one's own, in place of all settings above: a Python file with a function build(size, device)",
    },
    "size": {"type": parse_integer_option, "help": "what that function is called with"},
    "devices": {
        "help": "comma-separated, the baseline first: cpu,cuda:0; cpu@1 is one thread; a lane follows a +: "
        "cpu@2+compiled10, cuda:0+graph10+fused, cuda:0+bf16, cpu+micro250"
    },
    "fair": {
        "choices": ("full",),
        "help": "full: the lanes that may help the CPU (compiled, channels last, kept memory, …) contend too, for its "
        "best",
    },
    "basis": {"choices": tuple(BASES), "help": "what counts as the cost (default steady)"},
    "store": {
        "type": _store,
        "default": RESULTS,
        "help": f"folder of results, or an address such as s3://bucket/prefix (default {_KEPT})",
    },
    "fresh": {"action": "store_true", "help": "measure again even what the store knows"},
    "tensorboard": {
        "type": Path,
        "metavar": "DIR",
        "help": "also write every row as a TensorBoard run into this folder (needs: pip install tensorboard)",
    },
    "json": {"action": "store_true", "help": "print one JSON document"},
}
"""Options that several commands have, by name."""


def add_point(parser: argparse.ArgumentParser) -> None:
    """One option for each field of a point; left out, the preset's or the default value holds."""
    parser.add_argument("--preset", choices=sorted(presets.PRESETS), help="settings of one of the four tutorials")
    scales = "; ".join(f"{name}: {what}" for name, what in presets.SCALES.items())
    parser.add_argument("--scale", choices=tuple(presets.SCALES), help=f"of the preset (default full); {scales}")
    for name in TRAINING:
        entry = FIELDS[name]
        span = f"{entry.low:g} to {entry.high:g}" if entry.is_number else ""
        told = f"{span} (default {entry.default})".strip()
        parser.add_argument(f"--{name.replace('_', '-')}", choices=entry.words or None, help=told)


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    """Some of the options that several commands have, in this order."""
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def point(options: argparse.Namespace) -> Point:
    """The training that options describe; raises InvalidValue if one is out of range, or contradicts the preset."""
    if getattr(options, "training", None) is not None:
        return _custom_point(options)
    if getattr(options, "size", None) is not None:
        raise InvalidValue("size", options.size, "given with --training, one's own, which is called with it")
    size = scale(options)
    given = {name: value for name in TRAINING if (value := getattr(options, name)) is not None}
    if options.preset is None:
        return Point.parse(given)
    at = presets.preset(options.preset).point_at_scale(size)
    base = {name: getattr(at, name) for name in TRAINING}
    if {"dataset", "model"} & given.keys():
        raise InvalidValue("preset", options.preset, "given without --dataset and --model, which it sets itself")
    return Point.parse({name: value for name, value in {**base, **given}.items() if name not in models.AXES or value})


def folder(options: argparse.Namespace) -> str:
    """Where the file of one's own training lies; empty for a training of the catalogue."""
    named = getattr(options, "training", None)
    return "" if named is None else str(custom.locate_script(named)[0].parent)


def _custom_point(options: argparse.Namespace) -> Point:
    """One's own training; raises InvalidValue beside options of the catalogue's."""
    for name in ("preset", "scale", "fair", *TRAINING):
        if getattr(options, name) is not None:
            raise InvalidValue(name, getattr(options, name), "left out with one's own --training, which sets it itself")
    file, function = custom.locate_script(options.training)
    axis = options.values or options.range if hasattr(options, "values") else None
    if options.size is None and axis is None:
        raise InvalidValue("size", "", "a whole number that build is called with, given with --size")
    return Point(
        training=f"{file.name}:{function}",
        source_hash=sources.hash_sources(file),
        size=1 if options.size is None else options.size,
    )


def say_nothing(options: argparse.Namespace) -> bool:
    """Whether no option says anything of the training."""
    return all(getattr(options, name) is None for name in ("preset", "training", *TRAINING))


def scale(options: argparse.Namespace) -> presets.Scale:
    """The scale of the preset, full unless asked otherwise; raises InvalidValue if it is given without a preset."""
    if options.scale is not None and options.preset is None:
        raise InvalidValue("scale", options.scale, "given with the --preset that it is of")
    return require_choice("scale", options.scale or "full", presets.SCALES)


def limits(options: argparse.Namespace) -> presets.Limits | None:
    """How long the preset may take at its scale; None without a preset."""
    return presets.LIMITS[scale(options)] if options.preset else None
