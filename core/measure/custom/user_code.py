"""The user's code in this process: imported, called, and reported without frames of Crossover.

Every exception becomes one error with the script's traceback, also an attempt to end the process. Processes that the
script forks end here, because two processes would write one row. Its output is counted and discarded. This is not a
sandbox: the process is replaced afterwards.
"""

import contextlib
import functools
import importlib.util
import inspect
import io
import os
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

import torch

from ...errors import CustomTrainingFailed, LaneUnavailable, OutOfTime, SizeNotBuilt
from ...files import sources
from .. import devices
from .watchdog import Limits, Overtime, Stopwatch

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may be inside the folder of the script."""

SEED = 0
"""Seed of the random numbers before each `build`; a script may set another."""

MOST_LETTERS = 6_000
"""Maximum number of characters of a traceback in a message, from its end."""

LAST_LETTERS = 1_000
"""Maximum number of characters of printed text in memory, because an argument parser prints why it ends the process."""

Result = TypeVar("Result")


class Printed(io.TextIOBase):
    """A text stream that discards its text.

    Attributes:
        lines: number of lines written.
        last: end of the text.
    """

    lines, last = 0, ""

    def write(self, text: str) -> int:
        """Count the lines of a text."""
        self.lines += text.count("\n")
        self.last = (self.last + text[-LAST_LETTERS:])[-LAST_LETTERS:]
        return len(text)


@dataclass(frozen=True)
class Settings:
    """Settings of PyTorch for the whole process, which alternating trainings would change for each other.

    Attributes:
        dtype: default number format of new tensors.
        device: default device of new tensors.
        gradients: whether gradients are recorded.
        fp32: precision of fp32 operations.
    """

    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    gradients: bool = True
    fp32: devices.Fp32Precision = devices.PYTORCH_FP32

    @classmethod
    def capture(cls) -> Self:
        """Return the present settings."""
        return cls(
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_grad_enabled(),
            devices.Fp32Precision.read(),
        )

    def use(self) -> None:
        """Apply the settings that differ."""
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        if torch.get_default_device() != self.device:
            torch.set_default_device(None if self.device.type == "cpu" else self.device)
        if torch.is_grad_enabled() != self.gradients:
            torch.set_grad_enabled(self.gradients)
        self.fp32.use()


@dataclass
class UserCode:
    """Code of one script.

    Attributes:
        file: main file of the script.
        working_folder: folder in which it runs.
        printed: its output.
        limits: its time limits.
        is_starting: whether it is in its build or first step, where an error may depend on the size.
    """

    file: Path
    working_folder: Path = Path()
    printed: Printed = field(default_factory=Printed)
    limits: Limits = field(default_factory=Limits)
    is_starting: bool = False

    @property
    def stage(self) -> str:
        """The present stage of the script, for display."""
        return self.stopwatch.stage

    @stage.setter
    def stage(self, stage: str) -> None:
        self.stopwatch.stage = stage

    @functools.cached_property
    def stopwatch(self) -> Stopwatch:
        """The stopwatch of the script."""
        return Stopwatch(owns=functools.cache(self.owns), limits=self.limits)

    def call(self, work: Callable[[], Result]) -> Result:
        """Call a function that runs code of the script.

        Raises:
            CustomTrainingFailed: the script raised an error, or tried to end the process.
            SizeNotBuilt: it did so in its build or its first step.
            OutOfTime: its time is over.
            Exception: memory was exhausted; the type depends on the allocator.
        """
        process = os.getpid()
        try:
            with (
                self.stopwatch.run(),
                contextlib.redirect_stdout(self.printed),
                contextlib.redirect_stderr(self.printed),
            ):
                return work()
        except (CustomTrainingFailed, LaneUnavailable, OutOfTime):
            raise
        except Overtime:
            if self.stopwatch.is_running:  # a call within a call
                raise
            raise self.stopwatch.out_of_time() from None
        except BaseException as error:
            if isinstance(error, Exception) and devices.is_out_of_memory(error):
                raise
            kind = SizeNotBuilt if self.is_starting else CustomTrainingFailed
            raise kind(self.file.name, self._format_traceback(error)) from None
        finally:
            if os.getpid() != process:
                os._exit(0)

    def _format_traceback(self, error: BaseException) -> str:
        """Return the traceback, starting at the script."""
        told = traceback.TracebackException.from_exception(error)
        frames = list(told.stack)
        theirs = [place for place, frame in enumerate(frames) if self.owns(frame.filename)]
        told.stack = traceback.StackSummary.from_list(frames[theirs[0] :] if theirs else [])
        why = isinstance(error, SystemExit) and self.printed.last
        printed = f"\nIt printed last:\n{why}" if why else ""
        hint = f"{DEVICE_HINT}\n" if isinstance(error, TypeError | AttributeError) and _is_of_device(error) else ""
        return hint + ("".join(told.format()).rstrip() + printed)[-MOST_LETTERS:].rstrip()

    def owns(self, name: str) -> bool:
        """Return whether a file is in the folder of the script, but not in a library installed there."""
        path = Path(name)
        return path.is_relative_to(self.file.parent) and not LIBRARIES & set(path.parts)

    def modules(self) -> dict[str, ModuleType]:
        """Return the loaded modules of the script and of its imports from the same folder."""
        try:
            files, ours = {str(path) for path in sources.find_source_files(self.file)}, _list_initial_modules()
        except OSError:  # it took itself away
            return {}
        found = {name: module for name, module in sys.modules.items() if name not in ours}
        return {name: module for name, module in found.items() if getattr(module, "__file__", None) in files}

    def place(self) -> str:
        """Return the running line in the script's folder, as `my_training.py:12`; empty if none is running."""
        frame = sys._getframe(1)
        while frame is not None:
            if self.owns(frame.f_code.co_filename):
                return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""


DEVICE_HINT = "The argument `device` is a torch.device. Write str(device) where the script needs a string."


def _is_of_device(error: Exception) -> bool:
    """Return whether an error comes from a `torch.device` used as a string, as in `"cuda" in device`."""
    return "'torch.device'" in str(error) or "type device is not JSON" in str(error)


def reset_torch_state() -> None:
    """Reset seeds and settings of PyTorch to those of a new process, so that each `build` starts equally."""
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_default_device(None)
    Settings().use()


def load_builder(
    folder: str, training: str, source_hash: str, working_folder: str = "", limits: Limits | None = None
) -> tuple[UserCode, Callable[[int, torch.device], Any]]:
    """Return the function that builds a training, imported as `python script.py` would import it.

    Args:
        folder: folder of the file.
        training: name of the file and of the function.
        source_hash: hash of the file and its imports when the measurement was requested.
        working_folder: folder in which the script runs; `folder` if empty or missing.
        limits: time limits of the script.

    Raises:
        OwnTrainingFailed: the file is missing, was changed, or cannot be imported.
    """
    name, _, function = training.rpartition(":")
    file = Path(folder) / name
    try:
        known = bool(folder) and sources.hash_sources(file) == source_hash
    except OSError as error:
        raise CustomTrainingFailed(name, f"It cannot be read: {error.strerror}.") from None
    if not known:
        raise CustomTrainingFailed(
            name, "The file has changed since it was submitted, or is unknown here. Submit it again."
        )
    place = Path(working_folder if working_folder and Path(working_folder).is_dir() else folder)
    foreign = UserCode(file, place, limits=limits or Limits())
    waiting = [_function(foreign, function)]

    def build(size: int, device: torch.device) -> Any:
        if not _is_still(file, source_hash):
            raise CustomTrainingFailed(name, "It was changed while it was measured. Measure it again.")
        made = waiting.pop() if waiting else _function(foreign, function)
        reset_torch_state()
        return foreign.call(lambda: made(size, device))

    return foreign, build


def _is_still(file: Path, source_hash: str) -> bool:
    """Return whether a file and its imports are unchanged."""
    try:
        return sources.hash_sources(file) == source_hash
    except OSError:
        return False


def _function(foreign: UserCode, name: str) -> Callable[[int, torch.device], Any]:
    """Return a function of the file. The module is imported again, so each training has separate globals."""
    module = _import_module(foreign)
    made = getattr(module, name, None)
    if not callable(made):
        own = (
            each for each in vars(module).values() if inspect.isfunction(each) and each.__module__ == module.__name__
        )
        others = ", ".join(each.__name__ for each in own)
        raise CustomTrainingFailed(foreign.file.name, f"It has no function {name}{'; it has ' * bool(others)}{others}.")
    return made  # type: ignore[no-any-return]


@functools.cache
def _list_initial_modules() -> frozenset[str]:
    """Return the modules loaded before the script; some of them may be in its folder."""
    return frozenset(sys.modules)


def _import_module(foreign: UserCode) -> ModuleType:
    file = foreign.file
    os.chdir(foreign.working_folder)
    sys.dont_write_bytecode = True  # nothing of its folder is changed
    sys.argv = [str(file)]  # Crossover's arguments are no options of it
    if str(file.parent) != next(iter(sys.path), ""):
        sys.path.insert(0, str(file.parent))
    for loaded in foreign.modules():
        del sys.modules[loaded]
    name = (
        file.stem if file.stem.isidentifier() and file.stem not in sys.modules else f"own_{sources.hash_sources(file)}"
    )
    reset_torch_state()
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CustomTrainingFailed(file.name, "It is not a Python file.")
    module, run = importlib.util.module_from_spec(spec), spec.loader.exec_module
    sys.modules[name] = module
    foreign.call(lambda: run(module))
    return module
