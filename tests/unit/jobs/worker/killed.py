"""A process that dies at a call of a function, as far as a test can tell."""

import itertools

import pytest


class Killed(BaseException):
    """The process ends here; nothing after it is done."""


def die(owner: object, name: str, *, call: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process die at the given call of a function, before or after it is done."""
    real, calls = getattr(owner, name), itertools.count(1)

    def dying(*arguments, **choices):
        if next(calls) != call:
            return real(*arguments, **choices)
        if after:
            real(*arguments, **choices)
        raise Killed

    monkeypatch.setattr(owner, name, dying)
