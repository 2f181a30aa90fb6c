"""Threads of libraries that PyTorch does not know of: NumPy's linear algebra, scikit-learn, XGBoost.

Each brings threads of its own, which `torch.set_num_threads` leaves as they are. Without this a contender of one thread
would have one in PyTorch and all processors in NumPy.
"""

import sys

import torch
from threadpoolctl import ThreadpoolController

_PYTORCH = "/torch/lib/"


class Pools:
    """The pools of threads in this process, and how many threads they were given."""

    def __init__(self) -> None:
        self._found: ThreadpoolController | None = None
        self._modules = self._count = 0

    def use(self, count: int) -> None:
        """Give each as many threads; it costs milliseconds only where that is another number, or there are new ones."""
        if (len(sys.modules), count) == (self._modules, self._count):
            return
        if self._found is None or len(sys.modules) != self._modules:
            self._found, self._modules = ThreadpoolController(), len(sys.modules)
        self._count = count
        for pool in self._found.lib_controllers:
            if _PYTORCH not in pool.filepath.replace("\\", "/"):
                pool.set_num_threads(count)


POOLS = Pools()


def apply_thread_count() -> None:
    """Give all the number of threads that PyTorch has in this thread."""
    POOLS.use(torch.get_num_threads())
