"""Files at an address, in an object store or in a folder that several machines see, through pyarrow.

A file is complete or absent. Credentials come from the environment or from the files of the provider's tools, never
from an address, because addresses appear in commands, jobs and messages. Arrow's errors become `StoreError` with one
sentence. This module does not know what a file contains.
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

import pyarrow as pa
from pyarrow import fs

from ..errors import InvalidValue, NotReached, StoreError

SETTINGS: Mapping[str, frozenset[str]] = {
    "s3": frozenset({"endpoint_override", "scheme", "region"}),
    "gs": frozenset({"endpoint_override", "scheme"}),
    "abfs": frozenset({"endpoint_override"}),
    "file": frozenset(),
}
"""Schemes of addresses, each with the settings that its address may contain; none of them is a secret."""

CONNECT_S, ANSWER_S = 2.0, 4.0
"""Seconds to connect to a server, and to wait for each answer; a job cannot be stopped while it waits."""

SLOWEST_UPLOAD = 2**20
"""Lowest upload rate in bytes per second, from which the timeout of a write is computed."""

RETRY_AFTER_S = 2.0
"""Seconds for which a server that did not answer in time is not queried again."""

TRIES, QUICK_S, PAUSE_S = 3, 1.0, 0.1
"""Attempts for temporary failures that occur within `QUICK_S` seconds, and the pause before the second one."""

_REASON = re.compile(r"AWS Error ([A-Z_]+)")
_TEMPORARY_ERROR = re.compile(
    r"AWS Error (NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|\w*THROTTL\w*)"
)
_TIMEOUT = re.compile(r"curlCode: 28\b")
_TEMPORARY_FILE = re.compile(r"\.[0-9a-f]{32}\.tmp")
_SETTING = re.compile(r"[A-Za-z0-9.:/_\[\]-]{1,200}")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file in a listing.

    Attributes:
        size: in bytes.
        written_ns: time of the last write by the server's clock; some servers give whole seconds.
    """

    size: int
    written_ns: int


class RemoteStore:
    """Files at an address.

    Attributes:
        address: address as it was given.
    """

    def __init__(self, address: str) -> None:
        """Parse an address, such as `s3://bucket/prefix?region=eu-central-1`; no server is contacted yet.

        Raises:
            InvalidValue: the scheme is unknown, no folder is named, or there is a name, password or unknown setting.
            StoreError: pyarrow cannot open such an address.
        """
        self.address = address
        self._silent_until = 0.0
        self._scheme, settings, self._root = _parse_address(address)
        try:
            self._files = _open_file_system(self._scheme, address, settings)
        except (OSError, ValueError, NotImplementedError) as error:
            raise StoreError(f"The store {address} cannot be used: {_describe_error(error)}.") from error

    def list_files(self) -> dict[str, RemoteFile]:
        """Return all files by name relative to the address; empty if the prefix does not exist.

        Links in a folder are left out, because they may lead to files that were not shared. Objects whose key has an
        empty part (`rows//a.parquet`) are also left out, because no file system can name them.

        Raises:
            StoreError: the store cannot be reached or listed.
        """
        self._require_folder()
        selector = fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        infos = self._call(lambda: self._files.get_file_info(selector))
        return {
            info.path.removeprefix(f"{self._root}/"): RemoteFile(size=info.size or 0, written_ns=info.mtime_ns or 0)
            for info in infos
            if info.type == fs.FileType.File
            and not _TEMPORARY_FILE.search(info.path)
            and self._has_plain_path(info.path)
        }

    def _has_plain_path(self, path: str) -> bool:
        """Return whether a listed path has a valid name and, in a folder of this machine, passes through no link."""
        name = path.removeprefix(f"{self._root}/")
        if not all(name.split("/")):
            return False
        if self._scheme != "file":
            return True
        return os.path.realpath(path) == f"{os.path.realpath(self._root)}/{name}"

    def read_file(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: there is no such file.
            StoreError: the store cannot be reached.
        """

        def read() -> bytes:
            with self._files.open_input_stream(self._path(name)) as file:
                data: bytes = file.read()
                return data

        return self._call(read)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file; after a timeout it may still appear later.

        Raises:
            StoreError: the store cannot be reached or written.
        """
        self._require_folder()
        write = self._write_and_rename if self._scheme == "file" else self._write
        self._call(lambda: _call_within(ANSWER_S + len(data) / SLOWEST_UPLOAD, lambda: write(self._path(name), data)))

    def remove_file(self, name: str) -> None:
        """Remove a file; do nothing if there is none.

        Raises:
            StoreError: the store cannot be reached or written.
        """
        with contextlib.suppress(FileNotFoundError):
            self._call(lambda: self._files.delete_file(self._path(name)))

    def check_writable(self) -> None:
        """Write a small file and remove it.

        Raises:
            StoreError: the store cannot be reached or written.
        """
        name = f"probes/{uuid.uuid4().hex}"
        self.write_file(name, b"probe")
        self.remove_file(name)

    def _write(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path) as file:
            file.write(data)

    def _write_and_rename(self, path: str, data: bytes) -> None:
        folder = path.rpartition("/")[0]
        temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
        self._files.create_dir(folder)
        try:
            self._write(temporary, data)
            self._files.move(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                self._files.delete_file(temporary)
            raise

    def _require_folder(self) -> None:
        """Raise NotReached if a folder of this machine is missing: it may not be mounted, and must not be created."""
        if self._scheme == "file" and not Path(self._root).is_dir():
            raise NotReached(
                f"The store {self.address} cannot be reached: the folder {self._root} is not there. "
                "Mount it, or create it if it is new."
            )

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _call(self, call: Callable[[], T]) -> T:
        """Call the server, and retry after a temporary failure.

        Raises:
            FileNotFoundError: there is no such file.
            StoreError: the call failed, or the server did not answer a moment ago.
        """
        began = time.monotonic()
        if began < self._silent_until:
            raise NotReached(f"The store {self.address} cannot be reached: it does not answer.")
        for attempt in range(1, TRIES + 1):
            try:
                return call()
            except FileNotFoundError:
                raise
            except (pa.ArrowException, ValueError) as error:
                raise StoreError(f"The store {self.address} cannot be used: {_describe_error(error)}.") from error
            except OSError as error:
                temporary = _TEMPORARY_ERROR.search(str(error)) and time.monotonic() - began < QUICK_S
                if not temporary or attempt == TRIES:
                    if _is_timeout(error):
                        self._silent_until = time.monotonic() + RETRY_AFTER_S
                    raise NotReached(
                        f"The store {self.address} cannot be reached: {_describe_error(error)}."
                    ) from error
            time.sleep(attempt * PAUSE_S)
        raise AssertionError("the last attempt returns or raises")


def _call_within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise TimeoutError; the call then continues in its thread.

    A server that accepts data and then says nothing would block a writer for longer.
    """
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # raised again where the result is awaited
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return done.result(seconds)


def _parse_address(address: str) -> tuple[str, dict[str, str], str]:
    """Return scheme, settings and root; raise InvalidValue without repeating what may be a secret."""
    scheme = address.partition("://")[0].lower()
    if scheme not in SETTINGS:
        known = ", ".join(f"{known}://" for known in SETTINGS)
        raise InvalidValue("store", f"{scheme[:20]}://…", f"a folder, or an address with {known}")
    hidden = f"{scheme}://…"
    try:
        parts = urlsplit(address)
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise InvalidValue("store", hidden, "an address with a bucket or folder") from error
    has_login = (scheme != "abfs" and "@" in parts.netloc) or ":" in parts.netloc
    if has_login or any("@" in text for text in settings.values()):
        raise InvalidValue(
            "store", hidden, "an address without a name or password: credentials come from the environment"
        )
    if not settings.keys() <= SETTINGS[scheme] or not all(map(_SETTING.fullmatch, settings.values())):
        known = ", ".join(sorted(SETTINGS[scheme])) or "none"
        raise InvalidValue(
            "store", f"{hidden}?…", f"an address with known settings ({known}) in letters without escapes"
        )
    path = unquote(parts.path) if scheme == "file" else parts.path
    root = (path if scheme == "file" else f"{parts.netloc.partition('@')[0]}{path}").rstrip("/")
    if not root or (scheme == "file" and parts.netloc) or parts.fragment or "//" in root or ".." in root.split("/"):
        raise InvalidValue("store", hidden, "an address with a bucket or folder")
    return scheme, settings, root


def _open_file_system(scheme: str, address: str, settings: dict[str, str]) -> fs.FileSystem:
    if scheme == "file":
        return fs.LocalFileSystem()
    if scheme == "s3":
        return _open_s3(tuple(sorted(settings.items())))
    query = urlencode({**settings, "retry_limit_seconds": ANSWER_S} if scheme == "gs" else settings)
    return fs.FileSystem.from_uri(f"{scheme}://{urlsplit(address).netloc}/?{query}".rstrip("?"))[0]


@functools.lru_cache(maxsize=16)
def _open_s3(settings: tuple[tuple[str, str], ...]) -> fs.FileSystem:
    # a checksum behind the data omits the length, which Ceph's gateway and others refuse with status 411
    os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    return fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        allow_delayed_open=True,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),  # each retry would wait as long
        **dict(settings),
    )


def _is_timeout(error: OSError) -> bool:
    return isinstance(error, TimeoutError) or bool(_TIMEOUT.search(str(error)))


def _describe_error(error: Exception) -> str:
    """Return why a file system failed, in a few words."""
    text = str(error)
    if isinstance(error, OSError) and _is_timeout(error):
        return "it does not answer"
    if match := _REASON.search(text):
        return match[1].replace("_", " ").lower()
    return text.partition(". Detail:")[0].rstrip(".") or type(error).__name__
