"""Every error that Crossover raises on purpose, in one tree.

Each message is one sentence for the user: the error, the value, a valid choice. A page or the command line shows it,
with the names of `core.question.refused`. Any other exception that escapes is a bug, not an answer.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

Word = TypeVar("Word", bound=str)


class CrossoverError(Exception):
    """Root of the tree; `str(error)` is a sentence that can be shown."""


class InvalidValue(CrossoverError):
    """A value is outside what is allowed.

    As text it names fields and words as links, commands and files spell them; `core.question.refused` has the names
    that people read.

    Attributes:
        field: its name as the link, the command line and the store spell it.
        value: the given value.
        allowed: valid values, in words; `{}` is replaced by the list of `words` if there are some.
        words: the choices.
    """

    def __init__(self, field: str, value: object, allowed: str, words: Iterable[str] = ()) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.words = tuple(words)
        super().__init__(self.format_message(field))

    def format_message(self, name: str, spoken: Callable[[str], str] = str) -> str:
        """Return the sentence with a name for the field, and with every word as `spoken` writes it."""
        listed = ", ".join(map(spoken, self.words))
        allowed = self.allowed.replace("{}", listed) if self.words else self.allowed
        given = "nothing" if self.value in ("", None) else _format_value(self.value)
        return f"{name} must be {allowed} (got {given})."


def require_choice(field: str, value: object, choices: Iterable[Word], allowed: str = "one of {}") -> Word:
    """Return a value that must be one of some words.

    Raises:
        InvalidValue: it is none of them.
    """
    words = tuple(choices)
    if value not in words:
        raise InvalidValue(field, value, allowed, words)
    return words[words.index(value)]


class DeviceUnavailable(CrossoverError):
    """PyTorch does not see a requested device on this machine."""


class LaneUnavailable(CrossoverError):
    """A device cannot run a requested variant; nothing was run."""


class DatasetUnavailable(CrossoverError):
    """The files of a data set are not here and could not be downloaded."""


class OutOfMemory(CrossoverError):
    """A model and its batch do not fit into the memory of a device."""


class TooSlow(CrossoverError):
    """Not even the first blocks of a training could be timed within its budget; nothing was run.

    Attributes:
        reason: in words that go on after a colon.
    """

    def __init__(self, reason: str, advice: str) -> None:
        self.reason = reason
        super().__init__(f"Nothing was measured: {reason}. {advice}")


class OutOfTime(TooSlow):
    """A custom script ran for longer than its budget allows; blocks so far are saved."""

    def __init__(self, reason: str, advice: str) -> None:
        self.reason = reason
        CrossoverError.__init__(self, f"{reason[:1].upper()}{reason[1:]}. {advice}")


class SameTraining(CrossoverError):
    """All contenders of a comparison turned out to train alike, on equally many threads; nothing was timed."""


class LibraryFailed(CrossoverError):
    """A library that a model family needs is not installed, or refused the request; the message has its words."""


class CustomTrainingFailed(CrossoverError):
    """A custom script cannot be built or trained; the message has its traceback, from its file on."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file} failed. {message}" if "\n" not in message else f"{file} failed.\n{message}")


class SizeNotBuilt(CustomTrainingFailed):
    """A script refused one size, in its `build` or its first step; other sizes may work."""


class NotComparable(CrossoverError):
    """Two rows were measured or trained differently, so that one must not be set against the other."""


class StoreError(CrossoverError):
    """The store cannot be written or read as a whole."""


class NotReached(StoreError):
    """The place that machines share cannot be reached now, and may be again in a moment."""


class ForeignFile(StoreError):
    """One file is torn, hostile or not Crossover's; it is named and skipped, the rest loads."""


class DamagedFile(CrossoverError):
    """A small file of Crossover has invalid content; it is named, and nothing is deleted for it.

    Attributes:
        name: of the file.
        reason: in words that go on after a colon.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name} is damaged: {reason}.")


class NotAllowed(CrossoverError):
    """The host does not let this visitor do this."""


class JobError(CrossoverError):
    """A job could not be queued, found or steered."""


def unwritable(place: str, error: OSError) -> str:
    """Return the sentence that a file or folder, by its name for people, cannot be written, and why."""
    return f"{place} cannot be written: {error.strerror or error}."


def _format_value(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:,}" if number else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
