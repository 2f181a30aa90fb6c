"""A network between two processes that can be cut: a port here that passes on what comes to another one."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Link:
    """A port that leads to another, as long as it is not cut.

    Attributes:
        port: of this machine.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._cut = target, False
        self._server = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._open: set[socket.socket] = set()
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        """Break every connection, and let no new one come about meanwhile."""
        self._cut = True
        self._break_all()
        try:
            yield
        finally:
            self._cut = False

    def close(self) -> None:
        self._cut = True
        self._server.close()
        self._break_all()

    def _break_all(self) -> None:
        for end in list(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._server.accept()
                threading.Thread(target=self._join, args=(here,), daemon=True).start()

    def _join(self, here: socket.socket) -> None:
        with here, contextlib.suppress(OSError):
            if self._cut:
                return
            with socket.create_connection(self._target) as there:
                self._open |= {here, there}
                back = threading.Thread(target=_pass_on, args=(there, here), daemon=True)
                back.start()
                _pass_on(here, there)
                back.join()
                self._open -= {here, there}


@contextlib.contextmanager
def link(host: str, port: int) -> Iterator[Link]:
    """A port here that leads to another, closed afterwards."""
    made = Link((host, port))
    try:
        yield made
    finally:
        made.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
