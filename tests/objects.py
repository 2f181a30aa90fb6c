"""An object store for tests, which speaks S3 over HTTP: moto's server, or the one that the environment names."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyarrow import fs

from core.remote import remote_store
from tests.ports import free_port

KEYS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Credentials as the environment gives them; moto takes any."""

USUAL = remote_store.CONNECT_S, remote_store.ANSWER_S
"""Seconds after which a server that does not answer is out of reach."""

PATIENCE_S = 120.0

SERVER_VARIABLE = "CROSSOVER_TEST_S3"
"""Environment variable that names host and port of a real server that knows `KEYS`, to be used instead."""


class ObjectStore:
    """A server with buckets."""

    def __init__(self, endpoint: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.endpoint, self._process = endpoint, process

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let it take connections meanwhile and say nothing; it must be in a process of its own."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def address(self) -> str:
        """The address of a place that nobody has used."""
        bucket = f"lab-{uuid.uuid4().hex}"
        made = fs.S3FileSystem(
            endpoint_override=self.endpoint,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
            connect_timeout=PATIENCE_S,
            request_timeout=PATIENCE_S,
        )
        made.create_dir(bucket)
        return f"s3://{bucket}/rows?endpoint_override={self.endpoint}&scheme=http&region=us-east-1"


@contextmanager
def served() -> Iterator[ObjectStore]:
    """A server in this process, for as long as it is needed; the environment must hold `KEYS`."""
    if endpoint := os.environ.get(SERVER_VARIABLE):
        yield ObjectStore(endpoint)
        return
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with _waits(PATIENCE_S, PATIENCE_S):  # where this process is busy, so is the server in it, and is not gone
            yield ObjectStore(f"{host}:{port}")
    finally:
        server.stop()


@contextmanager
def _waits(connect_s: float, answer_s: float) -> Iterator[None]:
    """Let this process wait for so long until it takes a server to be out of reach."""
    before = remote_store.CONNECT_S, remote_store.ANSWER_S
    remote_store.CONNECT_S, remote_store.ANSWER_S = connect_s, answer_s
    try:
        yield
    finally:
        remote_store.CONNECT_S, remote_store.ANSWER_S = before


@contextmanager
def served_apart() -> Iterator[ObjectStore]:
    """The same in a process of its own, so that it can be killed, and shares no lock with who measures."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
                break
            time.sleep(0.1)
        with _waits(*USUAL):  # also where another server is served in this process
            yield ObjectStore(f"127.0.0.1:{port}", server)
    finally:
        server.kill()
        server.wait()
