"""A place for files at an address, in an object store or in a folder that several machines see, through pyarrow.

A file is there as a whole or not at all. Credentials come from the environment or from where the provider's own tools
keep them, and never from an address, which stands in commands, jobs and messages. Nothing here knows what is in a file.
"""

import contextlib
import functools
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from pyarrow import fs

from core.errors import InvalidValue, StoreError

SETTINGS: Mapping[str, frozenset[str]] = {
    "s3": frozenset({"endpoint_override", "scheme", "region"}),
    "gs": frozenset({"endpoint_override", "scheme"}),
    "abfs": frozenset({"endpoint_override"}),
    "file": frozenset(),
}
"""Kinds of places, each with the settings that its address may hold; none of them is a secret."""

CONNECT_S, ANSWER_S = 5.0, 30.0
"""Seconds in which a server has to be reached, and to answer."""

TRIES = 3

_REASON = re.compile(r"AWS Error ([A-Z_]+)")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_IS_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file of a place.

    Attributes:
        size: in bytes.
        written_s: when it was written, in seconds of the server's clock; whole seconds at some.
    """

    size: int
    written_s: float


def is_address(text: str) -> bool:
    """Whether a text is an address, and not a folder of this machine."""
    return bool(_IS_ADDRESS.match(text))


class Place:
    """Files at an address.

    Attributes:
        address: as it was given.
    """

    def __init__(self, address: str) -> None:
        """Take an address; nothing is asked of the server yet.

        Args:
            address: such as `s3://bucket/prefix?region=eu-central-1` or `file:///mnt/lab/crossover`.

        Raises:
            InvalidValue: it is of no known kind, names no folder, or holds a name, a password or an unknown setting.
        """
        self.address = address
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
        selector = fs.FileSelector(self._path(under), recursive=True, allow_not_found=True)
        with self._told():
            infos = self._files.get_file_info(selector)
        return {
            info.path.removeprefix(f"{self._root}/"): Found(size=info.size or 0, written_s=(info.mtime_ns or 0) / 1e9)
            for info in infos
            if info.type == fs.FileType.File and not _TEMPORARY.search(info.path)
        }

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """What is in a file; None if there is none, or it has more than so many bytes.

        Raises:
            StoreError: the place cannot be reached.
        """
        with self._told():
            try:
                with self._files.open_input_stream(self._path(name)) as file:
                    data: bytes = file.read(most_bytes + 1)
            except FileNotFoundError:
                return None
        return data if len(data) <= most_bytes else None

    def write(self, name: str, data: bytes) -> None:
        """Put a file there, in the place of one that has its name.

        Raises:
            StoreError: the place cannot be reached or written.
        """
        path = self._path(name)
        with self._told():
            if self._kind != "file":
                with self._files.open_output_stream(path) as file:
                    file.write(data)
                return
            folder = path.rpartition("/")[0]
            temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
            self._files.create_dir(folder)
            with self._files.open_output_stream(temporary) as file:
                file.write(data)
            self._files.move(temporary, path)

    def remove(self, name: str) -> None:
        """Take a file away; nothing happens if there is none.

        Raises:
            StoreError: the place cannot be reached or written.
        """
        with self._told(), contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._path(name))

    def check(self) -> None:
        """Write a file and take it away again, to find out now whether that can be done.

        Raises:
            StoreError: it cannot.
        """
        name = f"probes/{uuid.uuid4().hex}"
        self.write(name, b"probe")
        self.remove(name)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"The store {self.address} cannot be reached: {_reason(error)}.") from error


def _parsed(address: str) -> tuple[str, dict[str, str], str]:
    """Kind, settings and root of an address."""
    parts = urlsplit(address)
    kind = parts.scheme
    if kind not in SETTINGS:
        raise InvalidValue("store", address, f"a folder, or an address with {', '.join(f'{k}://' for k in SETTINGS)}")
    if (kind != "abfs" and "@" in parts.netloc) or parts.password:
        hidden = f"{kind}://…"
        raise InvalidValue("store", hidden, "an address without a name or password: credentials are the environment's")
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := settings.keys() - SETTINGS[kind]:
        known = ", ".join(sorted(SETTINGS[kind])) or "none"
        raise InvalidValue("store", f"{kind}://… with {', '.join(sorted(unknown))}", f"with known settings ({known})")
    root = (parts.path if kind == "file" else f"{parts.netloc}{parts.path}").rstrip("/")
    if not root or (kind == "file" and parts.netloc):
        raise InvalidValue("store", address, "an address with a bucket or folder")
    return kind, settings, root


@functools.lru_cache(maxsize=16)
def _kept_s3(settings: tuple[tuple[str, str], ...]) -> fs.FileSystem:
    return fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        allow_delayed_open=True,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        **dict(settings),
    )


def _file_system(kind: str, address: str, settings: dict[str, str]) -> fs.FileSystem:
    if kind == "file":
        return fs.LocalFileSystem()
    if kind == "s3":
        return _kept_s3(tuple(sorted(settings.items())))
    return fs.FileSystem.from_uri(address)[0]


def _reason(error: Exception) -> str:
    """Why a file system could not do it, in a few words of its own."""
    text = str(error)
    if named := _REASON.search(text):
        return named[1].replace("_", " ").lower()
    return text.partition(". Detail:")[0].rstrip(".") or type(error).__name__
