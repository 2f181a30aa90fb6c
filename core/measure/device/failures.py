"""Failures that end one contender, or one thing that is known of it, and not the run: no memory, a lane that fails.

What failed still holds what it had allocated for as long as its error is looked at, because the error's traceback
leads to it. `attempt` therefore gives back words and no error: whoever has them can free the memory.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

from core.errors import CrossoverError, CustomTrainingFailed, LaneUnavailable, OutOfMemory
from core.question.experiment import Contender
from core.question.lanes import PLAIN
from core.results.schema import Outcome
from core.text import as_line

_OUT_OF_MEMORY = (
    *("out of memory", "not enough memory", "not enough free memory"),  # CUDA, HIP, XPU, MPS, the allocator of Windows
    *("can't allocate memory", "cannot allocate memory"),  # DefaultCPUAllocator, with the system's own words
    *("failed to allocate", "invalid buffer size", "insufficient memory", "outofmemory"),  # MPS and Metal
    *("out_of_memory", "erroroutofmemory"),  # CUDA and HIP by the names of their codes
    *("out_of_device_memory", "out_of_host_memory", "out_of_resources"),  # UR_RESULT_ERROR_ and PI_ERROR_ of XPU
    *("alloc_failed", "allocation_failed"),  # CUBLAS_STATUS_, CUDNN_STATUS_, CUSOLVER_STATUS_, HIPBLAS_STATUS_
    *("status_memory_error", "miopenstatusallocfailed", "resource_exhausted"),  # rocBLAS, MIOpen, XLA
)
"""What allocators and libraries write, in small letters, where they raise a plain RuntimeError."""

_MOST_WORDS = 300
"""Letters of an error that a row's message quotes."""

_log = logging.getLogger(__name__)

Interpretation = TypeVar("Interpretation")


def attempt(
    work: Callable[[], object], interpret: Callable[[Exception], Interpretation | None]
) -> Interpretation | None:
    """Do work that may fail.

    Args:
        work: what to do.
        interpret: what to make of its error; nothing where the error is not known, which is then raised.

    Returns:
        What `interpret` made of the error; None if there was none. Nothing holds on to what had been allocated.
    """
    try:
        work()
    except Exception as error:
        found = interpret(error)
        if not found:
            raise
    else:
        found = None
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator refused: that of the host, of a device, or of one of its libraries."""
    if isinstance(error, OutOfMemory | MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def ending(contender: Contender, error: Exception) -> tuple[Outcome, str] | None:
    """How an error ends this contender alone, and the sentence that says so; None if it concerns the run.

    Whatever goes wrong in a lane other than the plain one is taken for the lane's: no compiler, a graph that cannot be
    recorded. It counts as interrupted, an outcome that readers of earlier versions know and do not build on.
    """
    if is_out_of_memory(error):
        return "out_of_memory", str(error) if isinstance(error, OutOfMemory) else "The device ran out of memory."
    if isinstance(error, LaneUnavailable):
        return "interrupted", str(error)
    if contender.lane == PLAIN or (isinstance(error, CrossoverError) and not isinstance(error, CustomTrainingFailed)):
        return None
    _log.warning("%s failed.", contender, exc_info=error)
    return "interrupted", f"{contender} failed: {_words(error)}."


def _words(error: Exception) -> str:
    """An error by its kind and its first line; of one that only announces another, by the one that it announces."""
    inner = getattr(error, "inner_exception", None)
    told = inner if isinstance(inner, Exception) else error
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    if isinstance(told, CustomTrainingFailed):  # whose last line is the error itself
        return as_line("".join(lines[-1:]), _MOST_WORDS).rstrip(".")
    return as_line(": ".join([type(told).__name__, *lines[:1]]), _MOST_WORDS).rstrip(".")
