"""`--tensorboard`: what `run` and `sweep` have in hand, written as TensorBoard runs as well."""

import argparse
from collections.abc import Sequence

from core.answer.export import tensorboard
from core.answer.export.recording import recording
from core.commands import output
from core.results.schema import Trial


def require(options: argparse.Namespace) -> None:
    """Refuse before anything is measured: raises StoreError if event files are asked for and cannot be written."""
    if options.tensorboard is not None:
        tensorboard.require(options.tensorboard)


def record(options: argparse.Namespace, trials: Sequence[Trial]) -> None:
    """Write the rows, if that was asked for; they have been shown before, so that a StoreError hides none of them."""
    if options.tensorboard is not None:
        files = tensorboard.write(options.tensorboard, map(recording, trials))
        output.say(f"{len(files)} TensorBoard run{'' if len(files) == 1 else 's'} written to {options.tensorboard}.")
