"""Code of others in this process: imported, called, and told of as if we were not there.

Whatever it raises becomes one error with its own traceback, also where it wants to end the process. What it forks ends
here, as two processes would write one row. What it prints is counted and thrown away. It is no sandbox: its process is
renewed afterwards.
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

from ...errors import CustomTrainingFailed, LaneUnavailable
from ...files import sources
from .. import devices

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders of what is installed, which may lie within that of the file."""

SEED = 0
"""Of what is drawn at random, before each `build`; whoever wants another sets it."""

MOST_LETTERS = 6_000
"""Letters of a traceback that are told; its end says most."""

LAST_LETTERS = 1_000
"""Letters that are kept of what was printed; an argument parser prints why it ends the process."""

Result = TypeVar("Result")


class Printed(io.TextIOBase):
    """Where text goes that nobody reads.

    Attributes:
        lines: that were written.
        last: the end of what was written.
    """

    lines, last = 0, ""

    def write(self, text: str) -> int:
        """Count the lines of a text."""
        self.lines += text.count("\n")
        self.last = (self.last + text[-LAST_LETTERS:])[-LAST_LETTERS:]
        return len(text)


@dataclass(frozen=True)
class Settings:
    """Settings of PyTorch that a whole process has, so that trainings which take turns would change each other's.

    Attributes:
        dtype: of new tensors.
        device: of new tensors.
        gradients: whether they are recorded.
    """

    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    gradients: bool = True

    @classmethod
    def capture(cls) -> Self:
        """As they are."""
        return cls(torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled())

    def use(self) -> None:
        """Set those that differ."""
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        if torch.get_default_device() != self.device:
            torch.set_default_device(None if self.device.type == "cpu" else self.device)
        if torch.is_grad_enabled() != self.gradients:
            torch.set_grad_enabled(self.gradients)


@dataclass
class UserCode:
    """Code of one file.

    Attributes:
        file: that it begins with.
        printed: what it printed.
    """

    file: Path
    printed: Printed = field(default_factory=Printed)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do something that runs code of the file.

        Raises:
            OwnTrainingFailed: it raised, or wanted to end the process.
            Exception: memory ran out, in whatever form.
        """
        process = os.getpid()
        try:
            with contextlib.redirect_stdout(self.printed), contextlib.redirect_stderr(self.printed):
                return work()
        except (CustomTrainingFailed, LaneUnavailable):
            raise
        except BaseException as error:
            if isinstance(error, Exception) and devices.is_out_of_memory(error):
                raise
            raise CustomTrainingFailed(self.file.name, self._format_traceback(error)) from None
        finally:
            if os.getpid() != process:
                os._exit(0)

    def _format_traceback(self, error: BaseException) -> str:
        """The traceback from the file on."""
        told = traceback.TracebackException.from_exception(error)
        frames = list(told.stack)
        theirs = [place for place, frame in enumerate(frames) if self.owns(frame.filename)]
        told.stack = traceback.StackSummary.from_list(frames[theirs[0] :] if theirs else [])
        why = isinstance(error, SystemExit) and self.printed.last
        printed = f"\nIt printed last:\n{why}" if why else ""
        return ("".join(told.format()).rstrip() + printed)[-MOST_LETTERS:].rstrip()

    def owns(self, name: str) -> bool:
        """Whether a file is one of its folder, and none of a library that is installed in there."""
        path = Path(name)
        return path.is_relative_to(self.file.parent) and not LIBRARIES & set(path.parts)

    def modules(self) -> dict[str, ModuleType]:
        """Those that are loaded of the file and of what it imports from its folder."""
        try:
            files, ours = {str(path) for path in sources.find_source_files(self.file)}, _list_initial_modules()
        except OSError:  # it took itself away
            return {}
        found = {name: module for name, module in sys.modules.items() if name not in ours}
        return {name: module for name, module in found.items() if getattr(module, "__file__", None) in files}

    def place(self) -> str:
        """File and line of the file's folder that is being run, as `my_training.py:12`; empty if none is."""
        frame = sys._getframe(1)
        while frame is not None:
            if self.owns(frame.f_code.co_filename):
                return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""


def reset_torch_state() -> None:
    """Seeds and settings of PyTorch as a fresh process has them, so that each `build` begins alike."""
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_default_device(None)
    Settings().use()


def load_builder(folder: str, training: str, source_hash: str) -> tuple[UserCode, Callable[[int, torch.device], Any]]:
    """The function that builds a training, imported from its file as Python would from its folder.

    Args:
        folder: where the file lies, which becomes the working directory.
        training: name of the file and of the function.
        source_hash: of the file and what it imports, as it was when it was asked for.

    Raises:
        OwnTrainingFailed: it is not there, is another by now, or cannot be imported.
    """
    name, _, function = training.rpartition(":")
    file = Path(folder) / name
    try:
        known = bool(folder) and sources.hash_sources(file) == source_hash
    except OSError as error:
        raise CustomTrainingFailed(name, f"It cannot be read: {error.strerror}.") from None
    if not known:
        raise CustomTrainingFailed(name, "It was changed since it was asked for, or is not known here. Ask again.")
    foreign = UserCode(file)
    waiting = [_function(foreign, function)]

    def build(size: int, device: torch.device) -> Any:
        if not _is_still(file, source_hash):
            raise CustomTrainingFailed(name, "It was changed while it was measured. Ask again.")
        made = waiting.pop() if waiting else _function(foreign, function)
        reset_torch_state()
        return foreign.call(lambda: made(size, device))

    return foreign, build


def _is_still(file: Path, source_hash: str) -> bool:
    """Whether a file and what it imports are as they were."""
    try:
        return sources.hash_sources(file) == source_hash
    except OSError:
        return False


def _function(foreign: UserCode, name: str) -> Callable[[int, torch.device], Any]:
    """A function of the file, whose module is imported anew: what is global in it is a training's own."""
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
    """Modules that were here before any of a file, some of which may lie in its folder."""
    return frozenset(sys.modules)


def _import_module(foreign: UserCode) -> ModuleType:
    file = foreign.file
    os.chdir(file.parent)
    sys.argv = [str(file)]  # ours are no options of it
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    for loaded in foreign.modules():
        del sys.modules[loaded]
    name = (
        file.stem if file.stem.isidentifier() and file.stem not in sys.modules else f"own_{sources.hash_sources(file)}"
    )
    reset_torch_state()
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CustomTrainingFailed(file.name, "It is no Python file.")
    module, run = importlib.util.module_from_spec(spec), spec.loader.exec_module
    sys.modules[name] = module
    foreign.call(lambda: run(module))
    return module
