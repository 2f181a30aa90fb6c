"""CUDA's own report of calls that wait for the device."""

import contextlib
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def waits(mode: str) -> Iterator[None]:
    """Let CUDA raise (`error`) or warn (`warn`) at every call that waits, until the block ends, however it ends.

    Torch warns that the mode itself is a prototype, which is an error wherever warnings are.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]ynchronization debug mode")
        if mode == "warn":
            warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
