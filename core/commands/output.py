"""How commands speak: results on stdout, everything else on stderr, and JSON that every parser accepts."""

import json
import math
import sys
from typing import Any


def show(text: str) -> None:
    """Print a result for people; it ends with one line break."""
    print(text.rstrip("\n"))


def show_json(document: dict[str, Any]) -> None:
    """Print a result for scripts; numbers that are not finite, which JSON does not have, become null."""
    print(json.dumps(_finite(document), indent=2, default=str, allow_nan=False))


def say(sentence: str) -> None:
    """Print something that is not the result."""
    print(sentence, file=sys.stderr)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(entry) for name, entry in value.items()}
        case list() | tuple():
            return [_finite(entry) for entry in value]
        case float():
            return value if math.isfinite(value) else None
    return value
