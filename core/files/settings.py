"""Checks of the values of a settings file by type; errors name the key."""

import re

from ..errors import InvalidValue

LARGEST = 10**12
"""Highest number that a key may have, unless its default is higher."""

WAYS = ("ray", "ray://HOST:PORT")
"""Valid names of a cluster, on the command line and in a settings file."""

_WAY = re.compile(r"ray|ray://[\w.-]{1,100}:\d{1,5}", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")


def require_type(key: str, value: object, kind: type, allowed: str) -> object:
    """Return a value if it has the required type.

    Raises:
        InvalidValue: the value has another type; `allowed` describes valid values.
    """
    if not isinstance(value, kind):
        raise InvalidValue(key, value, allowed)
    return value


def require_number(key: str, value: object, default: float) -> float:
    """Return a number that is not negative, and an integer if the default is one.

    Raises:
        InvalidValue: the value is not such a number, or too large.
    """
    whole = not isinstance(default, float)
    number = isinstance(value, int) or (isinstance(value, float) and not whole)
    most = max(LARGEST, default)
    if isinstance(value, bool) or not number or not 0 <= value <= most:  # type: ignore[operator]  # refuses NaN
        raise InvalidValue(key, value, f"a {'whole ' if whole else ''}number from 0 to {most:,}")
    return value  # type: ignore[return-value]


def domains(key: str, value: object) -> tuple[str, ...]:
    """Return a list of domain names.

    Raises:
        InvalidValue: the value is not such a list.
    """
    texts = value if isinstance(value, list) else None
    if texts is None or not all(isinstance(text, str) and _DOMAIN.fullmatch(text) for text in texts):
        raise InvalidValue(key, value, 'a list of domains in lower case, such as ["school.example"]')
    return tuple(texts)


def ways(key: str, value: object) -> tuple[str, ...]:
    """Return a list of clusters.

    Raises:
        InvalidValue: the value is not such a list.
    """
    if not isinstance(value, list) or not all(map(is_way, value)):
        raise InvalidValue(key, value, 'a list of ways such as ["ray"], each one of {}', WAYS)
    return tuple(dict.fromkeys(value))


def is_way(text: object) -> bool:
    """Return whether a text names a cluster in one of the forms of `WAYS`."""
    return isinstance(text, str) and _WAY.fullmatch(text) is not None
