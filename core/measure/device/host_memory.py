"""What becomes of the host's memory that a step frees: handed back to the system, or kept for the next step.

PyTorch keeps the memory of a GPU in a cache of its own. On a CPU the C library decides, and the usual one of Linux
hands large blocks back at once. At the next step the system gives the same memory again, page by page, each cleared
first; a network of convolutions can spend as long on that as on its arithmetic.

glibc moves the limits for "large" with what a process has freed so far, which would make a time depend on the past of
its process. Here they stand where glibc itself stops moving them, unless everything is kept.

Source: https://man7.org/linux/man-pages/man3/mallopt.3.html. Nothing here needs torch.
"""

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""Numbers of glibc's parameters (malloc.h)."""

_HANDED_BACK = {_MMAP_MAX: 65_536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}
"""glibc's default and the highest limits that it moves to by itself, in bytes on 64-bit systems."""

_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
"""No block comes from outside the heap, and the heap never shrinks."""


def set_memory_retention(*, keep: bool) -> None:
    """Keep what is freed from now on, or hand it back, together with all that was kept.

    Without glibc nothing happens: `why_not` says that it cannot be kept there.
    """
    library = _glibc()
    if library is None or _Now.kept is keep:
        return
    for parameter, value in (_KEPT if keep else _HANDED_BACK).items():
        library.mallopt(parameter, value)
    if not keep:
        library.malloc_trim(0)
    _Now.kept = keep


def why_not(kind: str) -> str:
    """Why memory cannot be kept for a kind of device, such as `cpu` or `cuda`; empty if it can."""
    if kind != "cpu":
        return "PyTorch keeps the memory of this device in any case"
    return "" if _glibc() else "keeping memory needs the C library glibc, which this system does not use"


class _Now:
    """What is set in this process; None before the first use."""

    kept: bool | None = None


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
