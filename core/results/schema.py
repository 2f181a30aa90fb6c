"""The one table of columns: names, types, units and meanings of everything that is kept of a trial.

`Trial` is the row, of the groups of columns in `core.results.columns`. The parquet schema, the column dictionary in
data/README.md and the checks on foreign files are all derived from its fields. Raw values only: whatever can be
computed from other columns is computed where it is read, so that a better statistic never needs a new measurement.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from core.results.columns.asked import OUTCOMES, Outcome, QuestionColumns
from core.results.columns.own import CustomValues
from core.results.columns.raw import RawValues

__all__ = ["OUTCOMES", "SCHEMA", "SCHEMA_VERSION", "TRIAL_COLUMNS", "VERSION_KEY", "Outcome", "Trial", "dictionary"]

SCHEMA_VERSION = 10
"""Raised when a column is added, removed or changes its meaning.

2: the outcome `timed`, which a reader of version 1 would refuse as a value that cannot be.
3: lanes: steps_per_call, optimizer, memory_format, micro_batch, startup_compile_s, lane_loss, reference_loss.
4: the lane's host_memory.
5: what a card says of itself around a block; whether start-up was taken in a fresh process.
6: one's own training: training, source_hash, size, breakdown_step_s, all that begins with own; parameters may be 0;
tested_step.
7: what the time of one's own steps is made of: own_inside_s, own_float64_s, own_between_s, own_floor_s, own_syncs;
startup_compile_served; of a training dtype, heads, sequence_length, embedding_rows, rounds, leaves.
8: nudged_loss, turns_step_s, float32_step_s, doubled_step_s.
9: other loaders of one's own training: own_given_s, own_workers0_s, own_workers2_s, own_pinned_s, own_resident_s.
10: larger batches of one's own training: own_larger_s."""

VERSION_KEY = b"crossover_schema_version"
"""Key of the version in a parquet file's metadata."""


@dataclass(frozen=True, kw_only=True)
class Trial(CustomValues, RawValues, QuestionColumns):
    """One point on one device: what was asked, on what, how it was measured, and every raw value.

    Lists named `block_*` have one entry per timed block in the order of time; `warmup_*` are kept and never
    summarised. Clock readings are of one monotonic host clock, so that intervals of trials measured on the
    same machine since the same boot can be compared. Empty lists and None mean "not measured".
    """

    @property
    def lane_failed(self) -> bool:
        """Whether the row's lane failed before anything was timed; a killed process leaves no row without blocks."""
        return self.outcome == "interrupted" and not self.block_steps

    @property
    def block_s(self) -> tuple[float, ...]:
        """Duration of each timed block in seconds."""
        readings = zip(self.block_begin_ns, self.block_end_ns, strict=True)
        return tuple((end - begin) / 1e9 for begin, end in readings)

    @functools.cached_property
    def step_s(self) -> tuple[float, ...]:
        """Seconds a step of each timed block; asked for again and again, of rows with many thousand blocks."""
        return tuple(s / steps for s, steps in zip(self.block_s, self.block_steps, strict=True))


TRIAL_COLUMNS: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(Trial)

SCHEMA = pa.schema(
    [pa.field(entry.name, entry.metadata["type"]) for entry in TRIAL_COLUMNS],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
"""What every file of the store is written with, and read against."""


def dictionary() -> str:
    """The columns as a Markdown table: name, type, unit and meaning."""
    lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for entry in TRIAL_COLUMNS:
        lines.append("| `{}` | {type} | {unit} | {meaning} |".format(entry.name, **entry.metadata))
    return "\n".join(lines) + "\n"
