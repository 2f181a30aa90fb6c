"""Options that several commands share, and the values that they select."""

import argparse
from pathlib import Path
from typing import Any

from .. import remote
from ..answer.judgement import BASES
from ..errors import CrossoverError, InvalidValue, StoreError, require_choice
from ..files import sources
from ..files.project import PROJECT
from ..question import custom, models, presets
from ..question.experiment import Point
from ..question.fields import FIELDS, TRAINING, Field
from ..results.store import RESULTS


def parse_number_option(text: str) -> float:
    """Parse a number, an integer if possible; the caller checks its range."""
    try:
        return int(text) if text.strip().lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number (got {text!r})") from None


def parse_integer_option(text: str) -> int:
    """Parse an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number (got {text!r})") from None


def _store(text: str) -> Path:
    try:
        if not text.strip():
            raise InvalidValue("store", "", "a folder, or an address such as s3://bucket/prefix")
        return remote.resolve_store(text)
    except CrossoverError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("store ")) from error


def require_store_folder(options: argparse.Namespace) -> Path:
    """Return the store of a command that only reads it; raises StoreError if the named folder does not exist."""
    store: Path = options.store
    if store != RESULTS and not store.exists():
        raise StoreError(f"There is no folder {store}.")
    return store


_KEPT = RESULTS.relative_to(PROJECT) if RESULTS.is_relative_to(PROJECT) else RESULTS
"""The default folder of results in the form that a user would type."""

OPTIONS: dict[str, dict[str, Any]] = {
    "training": {
        "metavar": "FILE:FUNCTION",
        "help": "your own training instead of the settings above: a Python file with a function build(size, device) "
        "(default: none)",
    },
    "size": {
        "type": parse_integer_option,
        "help": "size passed to build(); required with --training unless a sweep varies it (default: none)",
    },
    "devices": {
        "help": "comma-separated, the baseline first: cpu,cuda:0. cpu@1 is one thread; a variant follows a +: "
        "cpu@2+compiled10, cuda:0+graph10+fused, cuda:0+bf16, cpu+micro250 "
        "(default: the CPU and every accelerator, or one thread and all threads)"
    },
    "fair": {
        "choices": ("full",),
        "help": "full: also measure the variants with the same numerics that may help a device, such as compiled "
        "steps and CUDA graphs (default: none)",
    },
    "basis": {
        "choices": tuple(BASES),
        "help": "cost that counts: steps only, with the data transfer, or with the start-up (default: steady)",
    },
    "store": {
        "type": _store,
        "default": RESULTS,
        "help": f"folder of results, or an address such as s3://bucket/prefix (default: {_KEPT})",
    },
    "fresh": {"action": "store_true", "help": "measure again, even if the store has the result (default: off)"},
    "wait-for-quiet": {
        "type": parse_number_option,
        "nargs": "?",
        "const": 60,
        "default": 0,
        "metavar": "SECONDS",
        "help": "wait for other programs to stop using the machine, at most this long (60 without a number), then "
        "measure anyway (default: no wait)",
    },
    "tensorboard": {
        "type": Path,
        "metavar": "DIR",
        "help": "folder for a TensorBoard run per row; needs: pip install tensorboard (default: none)",
    },
    "json": {"action": "store_true", "help": "print one JSON document instead of text (default: off)"},
}
"""Options that several commands have, by name."""


def add_point(parser: argparse.ArgumentParser) -> None:
    """Add one option for each field of a point; the default is the value of the preset or of the field."""
    presets_text = "settings of one of the four tutorials, which replace the defaults below (default: none)"
    parser.add_argument("--preset", choices=sorted(presets.PRESETS), help=presets_text)
    scale_text = "size of the preset: full as published, class for a lesson of less than a minute (default: full)"
    parser.add_argument("--scale", choices=tuple(presets.SCALES), help=scale_text)
    for name in TRAINING:
        entry = FIELDS[name]
        parser.add_argument(f"--{name.replace('_', '-')}", choices=entry.words or None, help=_describe_option(entry))


def _describe_option(entry: Field) -> str:
    """Return the help of a field's option: its meaning, range and default."""
    what = entry.option or entry.title
    if not entry.is_number:
        return f"{what} (default: {str(entry.default).lower()})"
    usual = f"{entry.default:,}" if entry.default >= entry.low else "the data set's default number"
    return f"{what}, {entry.low:,g} to {entry.high:,.0f} (default: {usual})"


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add some of the options that several commands share, in this order."""
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def point(options: argparse.Namespace) -> Point:
    """Return the training that options describe.

    Raises InvalidValue if an option is out of range, or contradicts the preset.
    """
    if getattr(options, "training", None) is not None:
        return _custom_point(options)
    if getattr(options, "size", None) is not None:
        raise InvalidValue("size", options.size, "given with --training, which passes it to build()")
    size = scale(options)
    given = {name: value for name in TRAINING if (value := getattr(options, name)) is not None}
    if options.preset is None:
        return Point.parse(given)
    at = presets.preset(options.preset).point_at_scale(size)
    base = {name: getattr(at, name) for name in TRAINING}
    if {"dataset", "model"} & given.keys():
        raise InvalidValue(
            "preset", options.preset, "given without --dataset and --model, because the script sets them"
        )
    return Point.parse({name: value for name, value in {**base, **given}.items() if name not in models.AXES or value})


def folder(options: argparse.Namespace) -> str:
    """Return the folder of the custom script's file; empty for a training of the catalogue."""
    named = getattr(options, "training", None)
    return "" if named is None else str(custom.locate_script(named)[0].parent)


def _custom_point(options: argparse.Namespace) -> Point:
    """Build the point of a custom script; raises InvalidValue if options of the catalogue are given too."""
    for name in ("preset", "scale", "fair", *TRAINING):
        if getattr(options, name) is not None:
            raise InvalidValue(name, getattr(options, name), "omitted with --training, because the script sets it")
    file, function = custom.locate_script(options.training)
    check_function(file, function)
    axis = options.values or options.range if hasattr(options, "values") else None
    if options.size is None and axis is None:
        raise InvalidValue("size", "", "a whole number that build is called with, given with --size")
    return Point(
        training=f"{file.name}:{function}",
        source_hash=sources.hash_sources(file),
        size=1 if options.size is None else options.size,
    )


def check_function(file: Path, function: str) -> None:
    """Raise InvalidValue if a script does not define a function; the script is only read."""
    try:
        found = sources.read_definitions(file)
    except OSError as error:
        raise InvalidValue("training", str(file), f"a file that can be read ({error.strerror})") from error
    except SyntaxError as error:
        reason = f"valid Python; line {error.lineno or 1} is not: {error.msg}"
        raise InvalidValue("training", file.name, reason) from error
    told = f"{file.name}:{function}"
    if not found.has(function):
        others = f", which has {', '.join(found.functions)}" if found.functions else ", which has none"
        raise InvalidValue("training", told, f"a function of {file.name}{others}")
    if not found.takes(function, 2):
        raise InvalidValue("training", told, "a function that takes two arguments, size and device")


def say_nothing(options: argparse.Namespace) -> bool:
    """Return whether no option describes the training."""
    return all(getattr(options, name) is None for name in ("preset", "training", *TRAINING))


def scale(options: argparse.Namespace) -> presets.Scale:
    """Return the scale of the preset, by default full; raises InvalidValue if it is given without a preset."""
    if options.scale is not None and options.preset is None:
        raise InvalidValue("scale", options.scale, "given with --preset")
    return require_choice("scale", options.scale or "full", presets.SCALES)


def limits(options: argparse.Namespace) -> presets.Limits | None:
    """Return the time limits of the preset at its scale; None without a preset."""
    return presets.LIMITS[scale(options)] if options.preset else None
