"""The exceptions that Crossover raises on purpose, in one class hierarchy.

Each message is one sentence for the user: the error, the value, a valid choice. Pages and commands show it with the
names from `core.question.describe`. Any other exception that reaches the user is a bug.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

Word = TypeVar("Word", bound=str)


class CrossoverError(Exception):
    """Base class of all errors; `str(error)` is a sentence for the user."""


class InvalidValue(CrossoverError):
    """A value is not allowed.

    The message spells fields and words as links, commands and files do; `core.question.describe` replaces them by
    readable names.

    Attributes:
        field: name of the field, as links, the command line and the store spell it.
        value: the given value.
        allowed: valid values, in words; `{}` is replaced by the list of `words`, if any.
        words: valid choices.
    """

    def __init__(self, field: str, value: object, allowed: str, words: Iterable[str] = ()) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.words = tuple(words)
        super().__init__(self.format_message(field))

    def format_message(self, name: str, spoken: Callable[[str], str] = str) -> str:
        """Return the message with `name` for the field, and with every choice as `spoken` formats it."""
        listed = ", ".join(map(spoken, self.words))
        allowed = self.allowed.replace("{}", listed) if self.words else self.allowed
        given = "nothing" if self.value in ("", None) else _format_value(self.value)
        return f"{name} must be {allowed} (got {given})."


def require_choice(field: str, value: object, choices: Iterable[Word], allowed: str = "one of {}") -> Word:
    """Return `value` if it is one of `choices`.

    Raises:
        InvalidValue: the value is not among the choices.
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
    """The files of a data set are missing and could not be downloaded."""


class OutOfMemory(CrossoverError):
    """A model and its batch do not fit into the memory of a device."""


class TooSlow(CrossoverError):
    """Not even the first blocks of a training could be timed within its budget; nothing was run.

    Attributes:
        reason: text that continues a sentence after a colon.
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
    """All contenders of a comparison run the same training with the same number of threads; nothing was timed."""


class LibraryFailed(CrossoverError):
    """A library that a model family needs is not installed or rejected the request; the message includes its error."""


class CustomTrainingFailed(CrossoverError):
    """A custom script cannot be built or trained; the message has the traceback, starting at the file of the script."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file} failed. {message}" if "\n" not in message else f"{file} failed.\n{message}")


class SizeNotBuilt(CustomTrainingFailed):
    """A custom script failed at one size, in `build` or in its first step; other sizes may work."""


class NotComparable(CrossoverError):
    """Two rows were measured or trained differently, so they cannot be compared."""


class StoreError(CrossoverError):
    """The store cannot be written or read as a whole."""


class NotReached(StoreError):
    """The store that machines share cannot be reached at the moment; a later attempt may succeed."""


class ForeignFile(StoreError):
    """A file is incomplete, malicious or not from Crossover; it is named and skipped, and other files are loaded."""


class DamagedFile(CrossoverError):
    """A small file of Crossover has invalid content; the message names it, and nothing is deleted.

    Attributes:
        name: name of the file.
        reason: text that continues a sentence after a colon.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name} is damaged: {reason}.")


class NotAllowed(CrossoverError):
    """The host does not allow this visitor to do this."""


class JobError(CrossoverError):
    """A job could not be queued, found or controlled."""


def unwritable(place: str, error: OSError) -> str:
    """Return a sentence that a file or folder, called `place`, cannot be written, with the reason."""
    return f"{place} cannot be written: {error.strerror or error}."


def _format_value(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:,}" if number else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
