"""Compiled code on disk, so that what this machine compiled once it need not compile again, with what that took.

A folder for each function: the caches of torch as compiling into empty ones filled them, and the seconds of it. What a
lane's start-up costs must not depend on what was compiled before; so a row says those seconds also where the code comes
from here. Code from a folder is run, so one that others can write to is never used.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files import atomic
from ..files.project import PROJECT
from ..results import environment

COMPILED_VARIABLE = "CROSSOVER_COMPILED"
"""Environment variable that names another folder of compiled code, which only its owner may write to."""

MOST_FUNCTIONS = 100
"""Functions whose code is kept, those used last; one takes a few megabytes."""

_CODE, _COLD = "code", "cold.json"
_OURS = [Path(__file__).with_name("execution.py")]


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """How one function was made ready.

    Attributes:
        cold_s: seconds that it took with empty caches, now or when the code was made.
        spent_s: seconds that it took now.
    """

    cold_s: float
    spent_s: float


class CompiledCode:
    """The place of one function's code on disk."""

    def __init__(self, function: Mapping[str, object]) -> None:
        """Take all that the function depends on but this machine, its software, and how we write a step."""
        here = environment.read_environment()
        ours = hashlib.sha256(b"".join(path.read_bytes() for path in _OURS)).hexdigest()
        all_of_it = {**function, "environment": [here.machine_id, here.python_version, here.torch_version, ours]}
        name = hashlib.sha256(json.dumps(all_of_it, sort_keys=True).encode()).hexdigest()[:32]
        root = _root()
        self._folder = root / name if root else None

    @contextlib.contextmanager
    def compiling(self) -> Iterator[list[Compilation]]:
        """Whatever is compiled within is taken from here, or else compiled with empty caches and kept.

        Yields:
            A list, which has how it was made ready afterwards.
        """
        from torch._inductor import utils

        told: list[Compilation] = []
        cold_s = self._cold_s()
        place, before = self._place(empty=cold_s is None), _count_cache_hits()
        with _redirect_caches(place) if place else utils.fresh_cache():
            begin = time.perf_counter()
            yield told
            spent_s = time.perf_counter() - begin
        if cold_s is not None and _count_cache_hits() > before:
            told.append(Compilation(cold_s=cold_s, spent_s=spent_s))
            return
        told.append(Compilation(cold_s=spent_s, spent_s=spent_s))
        if place and cold_s is None:
            _keep(place.parent, spent_s)
        elif place:
            shutil.rmtree(place.parent, ignore_errors=True)  # torch wants none of it

    def _place(self, *, empty: bool) -> Path | None:
        """The folder to compile in; None if it cannot be had."""
        if self._folder is None:
            return None
        place = self._folder / _CODE
        with contextlib.suppress(OSError):
            if empty:
                shutil.rmtree(self._folder, ignore_errors=True)  # its maker was killed as he compiled
                place.mkdir(parents=True)
            os.utime(self._folder)
            return place
        return None

    def _cold_s(self) -> float | None:
        """Seconds that compiling took when this code was made; None if there is none."""
        try:
            return float(json.loads((self._folder / _COLD).read_bytes())) if self._folder else None
        except (OSError, ValueError, TypeError):
            return None


def _keep(folder: Path, seconds: float) -> None:
    """Say that a function's code is complete, and remove what was not used for longest."""
    with contextlib.suppress(OSError):
        atomic.write_json(folder / _COLD, seconds)
        others = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[MOST_FUNCTIONS:]:
            shutil.rmtree(old, ignore_errors=True)


def _count_cache_hits() -> int:
    """How many functions torch has taken from a cache on disk so far."""
    from torch._dynamo.utils import counters

    return int(counters["inductor"]["fxgraph_cache_hit"])


def _root() -> Path | None:
    """The folder of all compiled code; None if it cannot be had, or somebody else may write to it."""
    root = Path(os.environ.get(COMPILED_VARIABLE) or PROJECT / "data" / "compiled")
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.lstat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & 0o022)
    return root.absolute() if mine and stat.S_ISDIR(facts.st_mode) else None


@contextlib.contextmanager
def _redirect_caches(folder: Path) -> Iterator[None]:
    """Let torch find and leave its code in a folder, and remember none of it beyond."""
    from torch._inductor import utils

    places = {"TORCHINDUCTOR_CACHE_DIR": str(folder), "TRITON_CACHE_DIR": str(folder / "triton")}
    before = {name: os.environ.get(name) for name in places}
    utils.clear_caches()
    os.environ.update(places)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        utils.clear_caches()
