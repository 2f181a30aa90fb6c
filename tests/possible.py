"""Rows that may come through the door, however odd: for tests that want any of them.

Made from the table of `core.results.validation`: every text has its form, every number its range, lists that belong
together are equally long, and what a row says of its device, lane and test items agrees.
"""

import datetime
import re
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from core import text
from core.question import catalog
from core.question.experiment import Contender
from core.question.fields import FIELDS
from core.question.lanes import Lane
from core.results import validation
from core.results.schema import SCHEMA, TRIAL_COLUMNS, Trial

LANES = ("", "compiled", "compiled10", "graph10+bf16", "fused", "tf32", "channels_last+kept", "micro250")
DEVICES = {"cpu": "cpu", "cuda:0": "cuda", "cuda:1": "rocm", "xpu:0": "xpu", "mps": "mps"}
MOST = 2**59
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(text.replace_invisible)


@st.composite
def rows(draw: st.DrawFn) -> Trial:
    """Any row."""
    alike = {name: group[0] for group in validation.EQUALLY_LONG for name in group}
    lengths = {name: draw(st.integers(0, 4)) for name in SCHEMA.names}
    values = {c.name: draw(_value(c, lengths[alike.get(c.name, c.name)])) for c in TRIAL_COLUMNS}
    begin, end = values["block_begin_ns"], values["block_end_ns"]
    values["block_begin_ns"] = tuple(map(min, begin, end))
    values["block_end_ns"] = tuple(max(pair) + 1 for pair in zip(begin, end, strict=True))
    values["trial_id"] = f"{values['run_id']}-{draw(st.integers(0, 7))}"
    values["steps_per_epoch"] = min(values["steps_per_epoch"], values["samples"])
    return Trial(**{**values, **draw(_device()), **draw(_tested(values["dataset"]))})


def _value(column: Any, length: int) -> st.SearchStrategy[Any]:
    """Values of a column, `length` of them where it is a list."""
    name, kind = column.name, column.metadata["type"]
    if name in validation.FORMS:
        return _formed(name)
    if name in validation.WORDS:
        return st.sampled_from(sorted(validation.WORDS[name]))
    most = min(MOST, validation.AT_MOST.get(name, MOST))
    whole = st.integers(min_value=1, max_value=int(most))
    number = (
        st.floats(allow_nan=False)
        if name in validation.ANY_NUMBER
        else st.floats(min_value=0.0, max_value=min(1e18, most))
    )
    if pa.types.is_list(kind):
        return st.tuples(*[whole if kind.value_type == pa.int64() else number] * length)
    plain = {pa.string(): TEXT, pa.bool_(): st.booleans(), pa.int64(): whole, pa.float64(): number}
    value = plain.get(kind, st.just(b""))
    return st.none() | value if column.default is None else value


def _formed(name: str) -> st.SearchStrategy[str]:
    if name == "started_at":
        first, last = (datetime.datetime(year, 1, 1) for year in validation.YEARS)
        times = st.datetimes(min_value=first, max_value=last, timezones=st.just(datetime.UTC))
        return times.map(lambda moment: moment.isoformat(timespec="milliseconds"))
    if name == "dataset":
        return st.sampled_from([*catalog.DATASETS, "invented-later"])
    pattern = validation.FORMS[name].pattern
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)


@st.composite
def _device(draw: st.DrawFn) -> dict[str, Any]:
    """A contender, and the columns that follow from it."""
    device, threads = draw(st.sampled_from(sorted(DEVICES))), draw(st.integers(0, int(FIELDS["threads"].high)))
    words = draw(st.sampled_from(LANES)).split("+")
    asked = Contender(device=device, threads=threads, lane=Lane.parse([word for word in words if word]))
    served = threads or draw(st.integers(0, 64))
    columns = asked.lane.columns
    return {
        "contender": str(asked),
        "device": device,
        "device_kind": DEVICES[device],
        "threads": served,
        **columns,
    }


@st.composite
def _tested(draw: st.DrawFn, dataset: str) -> dict[str, Any]:
    """Counts and predictions of the test items, or none."""
    classes = len(catalog.DATASETS[dataset].classes) if dataset in catalog.DATASETS else draw(st.integers(1, 5))
    truth = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=12))
    predicted = draw(st.lists(st.integers(0, classes - 1), min_size=len(truth), max_size=len(truth)))
    if draw(st.booleans()):
        return {"confusion": (), "predictions": b"", "test_samples": len(truth)}
    counts = [0] * classes**2
    for label, answer in zip(truth, predicted, strict=True):
        counts[label * classes + answer] += 1
    return {"confusion": tuple(counts), "predictions": bytes(predicted), "test_samples": len(truth)}
