"""What was made lately, kept for who asks again: as much of it as fits into a number of bytes, shared by threads.

A cache that counts entries does not know what they take, and rows of a hostile file may take a thousand times what
ordinary ones do. What is larger than the whole room is made anew each time. Nothing here knows what is kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key; those that were not asked for longest go first.

    Args:
        most_bytes: what all values may take together.
        size: what one takes, in bytes.
    """

    def __init__(self, most_bytes: int, size: Callable[[V], int]) -> None:
        self._most_bytes, self._size = most_bytes, size
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """What the values take that are kept now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made now unless it is kept; two threads may make the same at once."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        size = self._size(value)
        with self._lock:
            if key not in self._values and size <= self._most_bytes:
                self._values[key] = value, size
                self._bytes += size
            while self._bytes > self._most_bytes:
                self._bytes -= self._values.popitem(last=False)[1][1]
        return value
