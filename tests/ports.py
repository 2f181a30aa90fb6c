"""A port for a server that a test starts in a process of its own."""

import contextlib
import random
import socket

FIRST, LAST = 20_000, 32_000
"""Below what systems give to whoever connects, so that no connection comes to have a port before its server has."""


def free_port() -> int:
    """A port of this machine that nobody listens on; drawn, as several processes look for one at the same time."""
    while True:
        port = random.SystemRandom().randrange(FIRST, LAST)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
