"""Exhibits and timings that somebody changed, 2,000 of each: every one is refused with one sentence or does no harm."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from core.answer import crossover, exhibition, timings
from core.answer.charts import studies, tutorials
from core.errors import CrossoverError
from core.exhibits import Clock
from core.results import exhibits
from pages.shared import recorded
from tests import exhibited

COUNT = 2_000
DRAWN = 20
"""Of so many files that are taken, one is drawn; drawing takes most of the time."""

HTML = "<img src=x onerror=alert(1)>"
ODD_WORDS = (
    "nan",
    "inf",
    "-1",
    "0",
    "1e999",
    "1e-320",
    "1e308",
    "9" * 400,
    "",
    "=1+1",
    HTML,
    "\x00",
    "1_0",
    "٣",
    " 7 ",
)
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    10**400,
    1e-320,
    "",
    HTML,
    "x" * 30_000,
    [],
    {},
    [[]],
    "\ud800",
)
ODD_JSON = ("NaN", "Infinity", "-Infinity", "1e999", "[" * 100_000, '{"a":' * 50_000, "\ufeff", "null", "9" * 5_000)


def one_sentence(said: str) -> bool:
    """Whether it can be shown as it is."""
    return 10 < len(said) < 1_000 and not any(character in said for character in "\n\r\x00")


def harmless(spec: dict[str, Any]) -> bool:
    """Whether a finished chart is JSON of finite numbers; text in it is data, which Vega never reads as HTML."""
    return bool(json.dumps(spec, allow_nan=False))


def test_changed_timings_are_refused_in_a_sentence_or_answered():
    draw, refusals, answers = random.Random(20261122), [], []
    for data in (changed_csv(draw) for _ in range(COUNT)):
        try:
            read = timings.read(data, "mine.csv")
            names = {"baseline": read.baseline, "challenger": read.challenger}
            answers.append((read.evidence, crossover.locate(read.evidence, axis="size", **names)))
        except CrossoverError as error:
            refusals.append(str(error))
    assert min(len(answers), len(refusals)) > COUNT / 20, "both must happen for this to mean something"
    assert not [said for said in refusals if not one_sentence(said)]
    for _, found in answers:
        assert found.sentence
        assert found.estimate is None or found.sizes[0].size <= found.estimate <= found.sizes[-1].size
    for evidence, found in answers[::DRAWN]:
        assert harmless(studies.crossover(found, evidence, kinds=None))
        assert harmless(studies.speedup(found, kinds=None))


def test_changed_exhibits_are_skipped_with_a_sentence_or_shown(tmp_path):
    good = exhibited.exhibit(exhibited.CLOCK)
    other = exhibits.add(tmp_path, good).with_name("0-changed.json")
    shown = skipped = 0
    for data in changed_json(random.Random(20261122)):
        other.write_bytes(data)
        found, left_out = exhibits.read(tmp_path)
        assert good in found or {entry.id for entry in found} == {good.id}, "the file beside it is read all the same"
        assert len(found) + len(left_out) in (1, 2)
        for entry in left_out:
            assert one_sentence(entry.reason), entry.reason
            skipped += 1
        for entry in (entry for entry in found if entry != good):
            shown += 1
            assert exhibition.text(entry)
            if isinstance(entry.content, Clock) and shown % DRAWN == 0:
                assert harmless(tutorials.clocks(entry.content, {}))
    assert min(shown, skipped) > COUNT / 20, "both must happen for this to mean something"


def changed_csv(draw: random.Random) -> bytes:
    """The sample of the page with cells, rows or bytes changed."""
    rows = [line.split(",") for line in recorded.SAMPLE.strip().split("\n")]
    for _ in range(draw.choice((1, 1, 2, 4))):
        row = draw.choice(rows)
        change = draw.choice((_odd_cell, _other_width, _other_number, _other_number, None))
        if change and row:
            change(draw, row)
        elif draw.random() < 0.5:
            rows.insert(draw.randrange(len(rows)), list(row))
        else:
            draw.shuffle(rows)
    data = bytearray(draw.choice(("\n", "\r\n", "\r")).join(",".join(row) for row in rows).encode())
    for _ in range(draw.choice((0, 0, 0, 1, 8))):
        place = draw.randrange(len(data) + 1)
        data[place:place] = bytes([draw.randrange(256)])
    return bytes(data if draw.random() < 0.9 else data[: draw.randrange(len(data) + 1)])


def _odd_cell(draw: random.Random, row: list[str]) -> None:
    row[draw.randrange(len(row))] = draw.choice(ODD_WORDS)


def _other_width(draw: random.Random, row: list[str]) -> None:
    row.append("x") if draw.random() < 0.5 else row.pop()


def _other_number(draw: random.Random, row: list[str]) -> None:
    row[draw.choice((0, -1))] = repr(draw.lognormvariate(0, 20))


def changed_json(draw: random.Random) -> Iterator[bytes]:
    """Exhibits of every kind with values, keys or bytes changed."""
    kinds = [exhibited.exhibit(asked).to_json() for asked in (exhibited.CLOCK, exhibited.MOVING, exhibited.FIRST_STEP)]
    sources = [json.loads(json.dumps(kind)) for kind in kinds]
    for _ in range(COUNT):
        data = copy.deepcopy(draw.choice(sources))
        for _ in range(draw.choice((0, 1, 1, 3))):
            _change(draw, data)
        text = json.dumps(data)
        if draw.random() < 0.15:
            place = draw.randrange(len(text))
            text = text[:place] + draw.choice(ODD_JSON) + text[place + draw.randrange(20) :]
        content = bytearray(text.encode("utf-8", "surrogatepass"))
        for _ in range(draw.choice((0, 0, 1, 16))):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        yield bytes(content)


def _change(draw: random.Random, data: Any) -> None:
    """Change one value or key somewhere below."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and draw.random() < 0.8:
            data = data[key]
            continue
        match draw.randrange(4):
            case 0 if isinstance(data, dict):
                del data[key]
            case 1 if isinstance(data, list):
                data.append(copy.deepcopy(data[key]))
            case _:
                data[key] = draw.choice(ODD_VALUES)
        return
