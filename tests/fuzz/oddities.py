"""Odd values: what a broken disk, another program or another person may leave where ours would be."""

import math
import os
from typing import Any

from tests import hostile

HTML = '<script>alert(1)</script><img src=x onerror="alert(2)">![a](http://example.org/a.png) $x$ :red[b]'


class Raw(str):
    """What stands in a file as it is, since no value would be written like that."""

    __slots__ = ()


TEXTS: tuple[str, ...] = (
    *hostile.TEXTS,
    "",
    " ",
    HTML,
    "=1+1",
    ";=cmd|' /C calc'!A0",
    "https://example.org/a?b=c",
    "x" * 30_000,
    "\x00",
    "a\nb\r\nc",
    "\x1b]0;title\x07\x1b[2J",
    "\u202eabc\u2066",
    "\u2028",
    "\u3164\u115f",
    "e\u0301" * 40,
    "\U0001f469\u200d\U0001f4bb",
    "\ud800",
    "../../../etc/passwd",
    "C:\\x\\y",
    "nan",
    "true",
    "null",
    "1e999",
    "-1",
    "9" * 400,
    "9" * 5_000,
    "\u0663",
    "1_0",
    "cpu@abc",
    "cpu@" + "9" * 1_900,
    "{}",
    "[" * 2_000,
    "%s %(x)s {0.__class__}",
)
"""Texts that end, hide, run, break or become something else somewhere."""

NUMBERS: tuple[float, ...] = (
    0,
    1,
    -1,
    2,
    7,
    0.5,
    -0.0,
    2**31 - 1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63),
    10**18,
    10**400,
    1e-320,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    os.getpid(),
    os.getppid(),
)
"""Numbers at the ends of what counts, clocks and types hold; and processes that are there."""

RAWS: tuple[Raw, ...] = tuple(
    map(
        Raw,
        (
            "1e400",
            "-1e400",
            "9" * 5_000,
            "0x10",
            "01",
            "1.",
            "\\u0000",
            '"\\ud800"',
            "[" * 100_000,
            "[" * 900 + "]" * 900,
            "[" * 90_000 + "]" * 90_000,
            '{"a":' * 50_000,
            "\ufeff",
            "/*",
            "",
        ),
    )
)
"""What no value is written like: numbers beyond all, halves of letters, brackets without end."""

OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": ""}, [0] * 2_000, {"a": {"b": [1, "x", None]}})
"""Values of other types."""

VALUES: tuple[Any, ...] = (*OTHERS, *NUMBERS, *TEXTS, *RAWS)

KEYS: tuple[str, ...] = ("", "pid", "id", "__class__", "\x00", "\ud800", "x" * 10_000, "new", "token_hash", "0")
"""Names of what is added."""
