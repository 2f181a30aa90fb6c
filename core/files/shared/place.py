"""A place for files at an address, in an object store or in a folder that several machines see, through pyarrow.

A file is there as a whole or not at all. Credentials come from the environment or from where the provider's own tools
keep them, and never from an address, which stands in commands, jobs and messages. Nothing here knows what is in a file.
"""

import contextlib
import functools
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pyarrow import fs

from ...errors import InvalidValue, NotReached, StoreError

SETTINGS: Mapping[str, frozenset[str]] = {
    "s3": frozenset({"endpoint_override", "scheme", "region"}),
    "gs": frozenset({"endpoint_override", "scheme"}),
    "abfs": frozenset({"endpoint_override"}),
    "file": frozenset(),
}
"""Kinds of places, each with the settings that its address may hold; none of them is a secret."""

CONNECT_S, ANSWER_S = 2.0, 4.0
"""Seconds in which a server has to be reached, and to say anything; who waits for it cannot be stopped meanwhile."""

SLOWEST = 2**20
"""Bytes a second that a server takes at least; whoever writes waits no longer."""

AGAIN_S = 2.0
"""For how long a server that did not answer in time is not asked again, lest who asks much waits for each answer."""

TRIES, QUICK_S, PAUSE_S = 3, 1.0, 0.1
"""How often is tried what soon fails for a reason that passes, how soon, and how long is waited before the second."""

_REASON = re.compile(r"AWS Error ([A-Z_]+)")
_PASSES = re.compile(r"AWS Error (NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|\w*THROTTL\w*)")
_LATE = re.compile(r"curlCode: 28\b")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_SETTING = re.compile(r"[A-Za-z0-9.:/_\[\]-]{1,200}")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file of a place.

    Attributes:
        size: in bytes.
        written_s: when it was written, in seconds of the server's clock; whole seconds at some.
    """

    size: int
    written_s: float


class Place:
    """Files at an address.

    Attributes:
        address: as it was given.
    """

    def __init__(self, address: str, *, ours: bool = False) -> None:
        """Take an address; nothing is asked of the server yet.

        Args:
            address: such as `s3://bucket/prefix?region=eu-central-1` or `file:///mnt/lab/crossover`.
            ours: whether a folder is made where there is none; another one may only not be mounted.

        Raises:
            InvalidValue: it is of no known kind, names no folder, or holds a name, a password or an unknown setting.
        """
        self.address, self._ours = address, ours
        self._late_until = 0.0
        self._kind, settings, self._root = _parsed(address)
        try:
            self._files = _file_system(self._kind, address, settings)
        except (OSError, ValueError, NotImplementedError) as error:
            raise StoreError(f"The store {address} cannot be used: {_reason(error)}.") from error

    def names(self, under: str = "") -> dict[str, Found]:
        """The files below a folder of the place, by their names below the place; none where there is no such folder.

        Raises:
            StoreError: the place cannot be reached, or not be listed.
        """
        self._require_folder()
        selector = fs.FileSelector(self._path(under), recursive=True, allow_not_found=True)
        infos = self._asked(lambda: self._files.get_file_info(selector))
        return {
            info.path.removeprefix(f"{self._root}/"): Found(size=info.size or 0, written_s=(info.mtime_ns or 0) / 1e9)
            for info in infos
            if info.type == fs.FileType.File and not _TEMPORARY.search(info.path)
        }

    def has(self, name: str) -> bool:
        """Whether there is a file of a name.

        Raises:
            StoreError: the place cannot be reached.
        """
        found = self._asked(lambda: self._files.get_file_info(self._path(name)))
        return bool(found.type == fs.FileType.File)

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """What is in a file; None if there is none, or it has more than so many bytes.

        Raises:
            StoreError: the place cannot be reached.
        """

        def given() -> bytes:
            with self._files.open_input_stream(self._path(name)) as file:
                data: bytes = file.read(most_bytes + 1)
                return data

        try:
            data = self._asked(given)
        except FileNotFoundError:
            return None
        return data if len(data) <= most_bytes else None

    def write(self, name: str, data: bytes) -> None:
        """Put a file there, in the place of one that has its name.

        Where that takes too long it is given up, and the file may be there later all the same.

        Raises:
            StoreError: the place cannot be reached or written.
        """
        self._require_folder()
        put = self._put if self._kind == "file" else self._put_at_once
        self._asked(lambda: _within(ANSWER_S + len(data) / SLOWEST, lambda: put(self._path(name), data)))

    def _put_at_once(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path) as file:
            file.write(data)

    def _put(self, path: str, data: bytes) -> None:
        folder = path.rpartition("/")[0]
        temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
        self._files.create_dir(folder)
        try:
            self._put_at_once(temporary, data)
            self._files.move(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                self._files.delete_file(temporary)
            raise

    def remove(self, name: str) -> None:
        """Take a file away; nothing happens if there is none.

        Raises:
            StoreError: the place cannot be reached or written.
        """
        with contextlib.suppress(FileNotFoundError):
            self._asked(lambda: self._files.delete_file(self._path(name)))

    def check(self) -> None:
        """Write a file and take it away again, to find out now whether that can be done.

        Raises:
            StoreError: it cannot.
        """
        name = f"probes/{uuid.uuid4().hex}"
        self.write(name, b"probe")
        self.remove(name)

    def _require_folder(self) -> None:
        """Refuse a folder that is not there: it would be made on this machine's disc, where no other one looks."""
        if self._kind == "file" and not self._ours and not Path(self._root).is_dir():
            raise NotReached(
                f"The store {self.address} cannot be reached: the folder {self._root} is not there. "
                "Mount it, or make it if it is new."
            )

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _asked(self, call: Callable[[], T]) -> T:
        """Let a server do something, again where it soon failed for a reason that passes.

        Raises:
            FileNotFoundError: there is no such file.
            StoreError: it cannot be done, or the server did not answer in time a moment ago.
        """
        began = time.monotonic()
        if began < self._late_until:
            raise NotReached(f"The store {self.address} cannot be reached: it does not answer.")
        for again in range(1, TRIES + 1):
            try:
                return call()
            except FileNotFoundError:
                raise
            except OSError as error:
                passes = _PASSES.search(str(error)) and time.monotonic() - began < QUICK_S
                if not passes or again == TRIES:
                    if _is_late(error):
                        self._late_until = time.monotonic() + AGAIN_S
                    raise NotReached(f"The store {self.address} cannot be reached: {_reason(error)}.") from error
            time.sleep(again * PAUSE_S)
        raise AssertionError("the last try returns or raises")


def _within(seconds: float, call: Callable[[], T]) -> T:
    """What a call returns, unless it takes too long: a server that takes data and then is silent holds it for longer.

    Raises:
        TimeoutError: it does; the call goes on.
    """
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # is raised where the result is waited for
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return done.result(seconds)


def _parsed(address: str) -> tuple[str, dict[str, str], str]:
    """Kind, settings and root of an address; one that is refused is not repeated where it may hold a secret."""
    kind = address.partition("://")[0].lower()
    if kind not in SETTINGS:
        known = ", ".join(f"{known}://" for known in SETTINGS)
        raise InvalidValue("store", f"{kind[:20]}://…", f"a folder, or an address with {known}")
    hidden = f"{kind}://…"
    try:
        parts = urlsplit(address)
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise InvalidValue("store", hidden, "an address with a bucket or folder") from error
    if (
        (kind != "abfs" and "@" in parts.netloc)
        or ":" in parts.netloc
        or any("@" in text for text in settings.values())
    ):
        raise InvalidValue("store", hidden, "an address without a name or password: credentials are the environment's")
    if not settings.keys() <= SETTINGS[kind] or not all(map(_SETTING.fullmatch, settings.values())):
        known = ", ".join(sorted(SETTINGS[kind])) or "none"
        raise InvalidValue("store", f"{hidden}?…", f"an address with known settings ({known}) in plain letters")
    path = unquote(parts.path) if kind == "file" else parts.path
    root = (path if kind == "file" else f"{parts.netloc.partition('@')[0]}{path}").rstrip("/")
    if not root or (kind == "file" and parts.netloc) or parts.fragment or "//" in root or ".." in root.split("/"):
        raise InvalidValue("store", hidden, "an address with a bucket or folder")
    return kind, settings, root


@functools.lru_cache(maxsize=16)
def _kept_s3(settings: tuple[tuple[str, str], ...]) -> fs.FileSystem:
    # a checksum behind the data goes without their length, which Ceph's gateway refuses with status 411, as others do
    os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    return fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        allow_delayed_open=True,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),  # as it would wait as long each time
        **dict(settings),
    )


def _file_system(kind: str, address: str, settings: dict[str, str]) -> fs.FileSystem:
    if kind == "file":
        return fs.LocalFileSystem()
    if kind == "s3":
        return _kept_s3(tuple(sorted(settings.items())))
    query = urlencode({**settings, "retry_limit_seconds": ANSWER_S} if kind == "gs" else settings)
    return fs.FileSystem.from_uri(f"{kind}://{urlsplit(address).netloc}/?{query}".rstrip("?"))[0]


def _is_late(error: OSError) -> bool:
    return isinstance(error, TimeoutError) or bool(_LATE.search(str(error)))


def _reason(error: Exception) -> str:
    """Why a file system could not do it, in a few words of its own."""
    text = str(error)
    if isinstance(error, OSError) and _is_late(error):
        return "it does not answer"
    if named := _REASON.search(text):
        return named[1].replace("_", " ").lower()
    return text.partition(". Detail:")[0].rstrip(".") or type(error).__name__
