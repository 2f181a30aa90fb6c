"""`--tensorboard`: what `run` and `sweep` have in hand, written as TensorBoard runs as well."""

import argparse
from collections.abc import Sequence

from core.answer.export import tensorboard
from core.answer.export.recording import trial_recording
from core.commands import output
from core.results.schema import Trial


def check_tensorboard_option(options: argparse.Namespace) -> None:
    """Refuse before anything is measured: raises StoreError if event files are asked for and cannot be written."""
    if options.tensorboard is not None:
        tensorboard.require_event_folder(options.tensorboard)


def record(options: argparse.Namespace, trials: Sequence[Trial]) -> None:
    """Write the rows, if that was asked for; they have been shown before, so that a StoreError hides none of them."""
    if options.tensorboard is not None:
        files = tensorboard.write_event_files(options.tensorboard, map(trial_recording, trials))
        output.print_note(
            f"{len(files)} TensorBoard run{'' if len(files) == 1 else 's'} written to {options.tensorboard}."
        )
