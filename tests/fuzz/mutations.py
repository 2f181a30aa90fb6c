"""Changes of files, of their bytes and of what their text says; each follows from the `random.Random` that is given."""

import contextlib
import copy
import json
import sqlite3
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from random import Random
from typing import Any

from tests.fuzz.oddities import KEYS, NUMBERS, TEXTS, VALUES, Raw

PIECE = 2_000
"""Bytes of a piece that is put elsewhere, at most."""

Place = tuple[Any, Any]
"""A container and a key of it."""


def octets(draw: Random, content: bytes) -> bytes:
    """Other bytes."""
    if not content:
        return draw.randbytes(draw.randrange(1, 50))
    return draw.choice(_OF_BYTES)(draw, content)


def flip(draw: Random, content: bytes) -> bytes:
    """Bits that are wrong, a few or many."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(draw: Random, content: bytes) -> bytes:
    """The end, or some of the middle, is missing."""
    begin = draw.randrange(len(content))
    return content[:begin] + (content[begin + draw.randrange(200) :] if draw.random() < 0.5 else b"")


def splice(draw: Random, content: bytes) -> bytes:
    """A piece stands elsewhere too, beside what was there or in its place."""
    begin, end, to = (draw.randrange(len(content)) for _ in range(3))
    piece = content[min(begin, end) : max(begin, end)][:PIECE]
    return content[:to] + piece + content[to + (len(piece) if draw.random() < 0.7 else 0) :]


def cell(draw: Random, content: bytes) -> bytes:
    """Another value in a cell of a SQLite database, or a table, trigger or version that was not there."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content[:18] + b"\1\1" + content[20:])  # there is no log in memory
        with contextlib.suppress(sqlite3.Error, UnicodeError, OverflowError):  # what the table does not take
            table = draw.choice(("classes", "students"))
            column = draw.choice([name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")])
            connection.execute(f"UPDATE {table} SET {column} = ?", (draw.choice((*TEXTS, *NUMBERS, None)),))
            if draw.random() < 0.1:
                connection.execute(draw.choice(_OF_SCHEMAS))
        connection.commit()
        changed = connection.serialize()
    return changed[:18] + b"\2\2" + changed[20:]


_OF_SCHEMAS = (
    "CREATE TABLE notes (text TEXT)",
    "CREATE TRIGGER evil AFTER INSERT ON students BEGIN DELETE FROM classes; END",
    "DROP TABLE students",
    "ALTER TABLE students ADD COLUMN mail TEXT",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
)


def _zeros(draw: Random, content: bytes) -> bytes:
    """A block that was never written, as after a loss of power; up to the end, or all of it."""
    begin = draw.choice((0, draw.randrange(len(content))))
    length = draw.choice((1, 16, 512, len(content)))
    return content[:begin] + bytes(min(length, len(content) - begin)) + content[begin + length :]


def _another_byte(draw: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 3))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _inserted(draw: Random, content: bytes) -> bytes:
    place = draw.randrange(len(content) + 1)
    some = draw.choice((b"\x00", b'"', b"{", b"}", b",", b"\\", b"\xff\xfe", b"\xef\xbb\xbf", draw.randbytes(8)))
    return content[:place] + some * draw.choice((1, 1, 2, 400)) + content[place:]


def _twice(draw: Random, content: bytes) -> bytes:
    return content * draw.choice((2, 3))


def _encoded(draw: Random, content: bytes) -> bytes:
    """The same text as another program would write it."""
    return content.decode(errors="replace").encode(draw.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7")))


def _padded(draw: Random, content: bytes) -> bytes:
    """The same with white space, little or more than is read."""
    return content + b" " * draw.choice((1, 1_000, 5 * 2**20))


_OF_BYTES: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(flip, flip, flip, cut, cut, splice, splice, _zeros, _another_byte, _inserted, _inserted, _twice, _encoded),
)


def content_of(draw: Random, content: bytes, write: Callable[[Any], str], data: Any) -> bytes:
    """A file that says something else: in its bytes, in its structure, in both, or not at all but padded.

    Args:
        content: of the good file.
        write: what makes text of plain data.
        data: what the good file says.
    """
    way = draw.random()
    if way < 0.3:
        return octets(draw, content)
    if way < 0.32:
        return draw.choice((_padded, _twice, _encoded))(draw, content)
    text = write(structure(draw, data)).encode(errors="surrogatepass")
    return octets(draw, text) if way > 0.9 else text


def structure(draw: Random, data: Any) -> Any:
    """Plain data with some nodes replaced, removed, added, doubled, swapped or renamed; `data` stay as they are."""
    changed = [copy.deepcopy(data)]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        places = list(_places(changed))
        draw.choice(_OF_NODES)(draw, draw.choice(places), places)
    return changed[0]


def _places(inside: Any) -> Iterator[Place]:
    """Every node below, by where it is."""
    keys = list(inside) if isinstance(inside, MutableMapping) else range(len(inside))
    for key in keys:
        yield inside, key
        if isinstance(inside[key], MutableMapping | MutableSequence):
            yield from _places(inside[key])


def _replaced(draw: Random, place: Place, places: list[Place]) -> None:
    inside, key = place
    inside[key] = copy.deepcopy(draw.choice(VALUES))


def _removed(draw: Random, place: Place, places: list[Place]) -> None:
    inside, key = place
    if inside is not places[0][0]:
        del inside[key]


def _added(draw: Random, place: Place, places: list[Place]) -> None:
    inside, key = place
    value = copy.deepcopy(draw.choice((*VALUES, inside[key])))
    if isinstance(inside, MutableMapping):
        inside[draw.choice(KEYS)] = value
    elif inside is not places[0][0]:
        inside.insert(key, value)


def _swapped(draw: Random, place: Place, places: list[Place]) -> None:
    (inside, key), (other, name) = place, draw.choice(places)
    first, second = copy.deepcopy(inside[key]), copy.deepcopy(other[name])
    inside[key] = second
    if other is not inside and name in (other if isinstance(other, MutableMapping) else range(len(other))):
        other[name] = first


def _renamed(draw: Random, place: Place, places: list[Place]) -> None:
    inside, key = place
    if isinstance(inside, MutableMapping):
        inside[draw.choice((*KEYS, *(str(name) for _, name in places)))] = inside.pop(key)


def _of_its_type(draw: Random, place: Place, places: list[Place]) -> None:
    """Another value of the type that is right."""
    inside, key = place
    match inside[key]:
        case bool(value):
            inside[key] = not value
        case int() | float() as value:
            inside[key] = draw.choice(_OF_NUMBERS)(value if abs(value) < 1e200 else 1)
        case str(text):
            inside[key] = draw.choice((text[:-1], text + text, text.upper(), text[::-1], f" {text}", text * 200))
        case [*entries]:
            inside[key] = draw.choice((entries * 2, entries[::-1], entries[:1], entries * 300))
        case _:
            _replaced(draw, place, places)


_OF_NUMBERS: tuple[Callable[[float], float], ...] = (
    lambda value: -value,
    lambda value: value + 1,
    lambda value: value - 1,
    lambda value: value * 10,
    lambda value: value + 0.5,
    lambda value: value * 1e30,
)

_OF_NODES: tuple[Callable[[Random, Place, list[Place]], None], ...] = (
    *(_replaced, _replaced, _replaced, _removed, _added, _swapped, _renamed, _of_its_type, _of_its_type),
)


def as_json(data: Any) -> str:
    """Plain data as JSON, with what stands there as it is."""
    raws: list[Raw] = []
    text = json.dumps(_without_raws(data, raws))
    for number, raw in enumerate(raws):
        text = text.replace(json.dumps(_mark(number)), raw)
    return text


def _without_raws(data: Any, raws: list[Raw]) -> Any:
    match data:
        case Raw():
            raws.append(data)
            return _mark(len(raws) - 1)
        case {}:
            return {str(key): _without_raws(value, raws) for key, value in data.items()}
        case [*entries]:
            return [_without_raws(value, raws) for value in entries]
    return data


def _mark(number: int) -> str:
    return f"\x01as it is {number}\x01"


def as_toml(data: Any) -> str:
    """Plain data as TOML: tables as it has them at the top, and values in one line; nothing is left out."""
    if not isinstance(data, dict):
        return _toml(data)
    plain = [f"{_toml_key(key)} = {_toml(value)}" for key, value in data.items() if not isinstance(value, dict)]
    tables = [
        "\n".join([f"[{_toml_key(key)}]", *(f"{_toml_key(name)} = {_toml(entry)}" for name, entry in value.items())])
        for key, value in data.items()
        if isinstance(value, dict)
    ]
    return "\n".join([*plain, *tables]) + "\n"


def _toml_key(key: object) -> str:
    text = str(key)
    return text if text.isascii() and text.replace("_", "").isalnum() else json.dumps(text, ensure_ascii=False)


def _toml(value: Any) -> str:
    match value:
        case Raw():
            return str(value)
        case bool() | None:
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case {}:
            return "{" + ", ".join(f"{_toml_key(key)} = {_toml(entry)}" for key, entry in value.items()) + "}"
        case [*entries]:
            return "[" + ", ".join(map(_toml, entries)) + "]"
    return repr(value)
