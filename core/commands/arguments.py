"""Options that several commands share, and what they stand for."""

import argparse
from pathlib import Path

from core.errors import CrossoverError, InvalidValue
from core.files import sources
from core.files.project import PROJECT
from core.question import models, own, presets
from core.question.experiment import Point
from core.question.fields import FIELDS, TRAINING
from core.results.finding import mirrored
from core.results.store import RESULTS


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


def add_own(parser: argparse.ArgumentParser) -> None:
    """A training of one's own in place of the catalogue's."""
    text = "one's own, in place of all settings above: a Python file with a function build(size, device)"
    parser.add_argument("--training", metavar="FILE:FUNCTION", help=text)
    parser.add_argument("--size", type=int, help="what that function is called with")


def add_devices(parser: argparse.ArgumentParser) -> None:
    """The contenders, as text."""
    text = (
        "comma-separated, the baseline first: cpu,cuda:0; cpu@1 is one thread; a lane follows a +: cpu@2+compiled10, "
        "cuda:0+graph10+fused, cuda:0+bf16, cpu+micro250"
    )
    parser.add_argument("--devices", help=text)


def add_fair(parser: argparse.ArgumentParser) -> None:
    """Whether the CPU contends with its lanes as well."""
    text = "full: the lanes that may help the CPU (compiled, channels last, kept memory, …) contend too, for its best"
    parser.add_argument("--fair", choices=("full",), help=text)


def add_remedies(parser: argparse.ArgumentParser) -> None:
    """Whether each device contends with the lanes that may help it."""
    text = "measure what would help: the lanes of each device that may take turns with its plain steps, as on the pages"
    parser.add_argument("--remedies", action="store_true", help=text)


def add_store(parser: argparse.ArgumentParser) -> None:
    """The folder of results, or the address of one that machines share."""
    text = f"folder of results, or an address such as s3://bucket/prefix (default {_shown(RESULTS)})"
    parser.add_argument("--store", type=_store, default=RESULTS, help=text)


def _store(text: str) -> Path:
    try:
        return mirrored.located(text)
    except CrossoverError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_json(parser: argparse.ArgumentParser) -> None:
    """Whether the result is for scripts."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def point(options: argparse.Namespace) -> Point:
    """The training that options describe; raises InvalidValue if one is out of range, or contradicts the preset."""
    if getattr(options, "training", None) is not None:
        return _own_point(options)
    size = scale(options)
    given = {name: value for name in TRAINING if (value := getattr(options, name)) is not None}
    if options.preset is None:
        return Point.parse(given)
    at = presets.preset(options.preset).at(size)
    base = {name: getattr(at, name) for name in TRAINING}
    if {"dataset", "model"} & given.keys():
        raise InvalidValue("preset", options.preset, "given without --dataset and --model, which it sets itself")
    return Point.parse({name: value for name, value in {**base, **given}.items() if name not in models.AXES or value})


def folder(options: argparse.Namespace) -> str:
    """Where the file of one's own training lies; empty for a training of the catalogue."""
    named = getattr(options, "training", None)
    return "" if named is None else str(own.located(named)[0].parent)


def _own_point(options: argparse.Namespace) -> Point:
    """One's own training; raises InvalidValue beside options of the catalogue's."""
    for name in ("preset", "scale", "fair", *TRAINING):
        if getattr(options, name) is not None:
            raise InvalidValue(name, getattr(options, name), "left out with one's own --training, which sets it itself")
    file, function = own.located(options.training)
    axis = options.values or options.range if hasattr(options, "values") else None
    if options.size is None and axis is None:
        raise InvalidValue("size", "", "a whole number that build is called with, given with --size")
    return Point(
        training=f"{file.name}:{function}",
        source_hash=sources.hashed(file),
        size=1 if options.size is None else options.size,
    )


def say_nothing(options: argparse.Namespace) -> bool:
    """Whether no option says anything of the training."""
    return all(getattr(options, name) is None for name in ("preset", "training", *TRAINING))


def scale(options: argparse.Namespace) -> presets.Scale:
    """The scale of the preset, full unless asked otherwise; raises InvalidValue if it is given without a preset."""
    if options.scale is not None and options.preset is None:
        raise InvalidValue("scale", options.scale, "given with the --preset that it is of")
    return presets.checked_scale(options.scale or "full")


def limits(options: argparse.Namespace) -> presets.Limits | None:
    """How long the preset may take at its scale; None without a preset."""
    return presets.LIMITS[scale(options)] if options.preset else None


def _shown(folder: Path) -> Path:
    """A folder of the project as its user would type it."""
    return folder.relative_to(PROJECT) if folder.is_relative_to(PROJECT) else folder
