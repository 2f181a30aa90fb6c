"""Tables of timings, and what is said of those that are refused."""

import pytest

from core.answer import timings_csv
from core.errors import CrossoverError

HEADER = "size,device,seconds"


BOTH = ("8,cpu,1.0", "8,gpu,2.0", "16,cpu,3.0", "16,gpu,2.5")


def file(*rows: str, header: str = HEADER) -> bytes:
    return ("\n".join([header, *rows]) + "\n").encode()


def refusal(data: bytes, **options) -> str:
    with pytest.raises(CrossoverError) as raised:
        timings_csv.read_timings(data, "mine.csv", **options)
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence
