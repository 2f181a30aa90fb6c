"""What is seen of a training of one's own."""

from dataclasses import dataclass

from core.results.columns.column import BOOL, FLOAT, FLOATS, INT, INTS, STRING, column


@dataclass(frozen=True, kw_only=True)
class CustomValues:
    """Empty in rows of the catalogue's trainings."""

    breakdown_step_s: tuple[float, ...] = column(
        FLOATS, "the step of one's own training, which has no parts that are known", unit="s per step", default=()
    )
    own_operations: tuple[int, ...] = column(
        INTS, "operations of PyTorch in each step of one's own training that was watched afterwards", default=()
    )
    own_waits: tuple[int, ...] = column(
        INTS, "times that each watched step waited for a value or a tensor to reach the host", default=()
    )
    own_waits_at: str = column(STRING, "file and line at which it waited most often; empty if not known", default="")
    own_syncs: tuple[int, ...] = column(
        INTS, "times that the host waited by CUDA's own debug mode, in steps watched for that alone", default=()
    )
    own_syncs_at: str = column(
        STRING, "file and line of most of the waits that CUDA counts; empty if not known", default=""
    )
    own_copies: tuple[int, ...] = column(
        INTS, "tensors that each watched step copied from the host to the device", default=()
    )
    own_elsewhere: tuple[int, ...] = column(
        INTS, "operations of each watched step whose result was on another device than asked for", default=()
    )
    own_float64: tuple[int, ...] = column(
        INTS, "operations of each watched step whose result was in float64", default=()
    )
    own_kept: tuple[int, ...] = column(INTS, "tensors alive in the process after each watched step", default=())
    own_inside_s: tuple[float, ...] = column(
        FLOATS,
        "time in operations, the device drained after each, while they are counted; without loader and placing",
        unit="s per step",
        default=(),
    )
    own_float64_s: tuple[float, ...] = column(
        FLOATS, "the part of own_inside_s in operations with their result in float64", unit="s per step", default=()
    )
    own_between_s: tuple[float, ...] = column(
        FLOATS,
        "stretches of 0.1 ms and more between two operations: the host does something else",
        unit="s per step",
        default=(),
    )
    own_floor_s: tuple[float, ...] = column(
        FLOATS,
        "of a training that computes next to nothing, measured beside it: a step by its operations, time in one while "
        "it is counted, reading a value that is there",
        unit="s",
        default=(),
    )
    own_given_s: tuple[float, ...] = column(
        FLOATS,
        "steps with the DataLoader of one's own training, in turns with those of the next five columns",
        unit="s per step",
        default=(),
    )
    own_workers0_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, without workers of the loader", unit="s per step", default=()
    )
    own_workers2_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with two workers that stay", unit="s per step", default=()
    )
    own_pinned_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with batches in pinned memory", unit="s per step", default=()
    )
    own_resident_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with batches that are on the device already", unit="s per step", default=()
    )
    own_larger_s: tuple[float, ...] = column(
        FLOATS, "the same for as many samples, in batches four times as large", unit="s per step", default=()
    )
    own_printed: int = column(INT, "lines that it had printed by the last block, on all devices of the run", default=0)
    own_threads_set: bool = column(BOOL, "whether its steps set the number of CPU threads themselves", default=False)
    own_learns: bool | None = column(
        BOOL, "whether its parameters changed as it was trained; None where it does not tell them", default=None
    )
    own_first_loss: float | None = column(FLOAT, "its loss after the first step; None if unknown", default=None)
    own_evaluation: float | None = column(
        FLOAT, "what its `evaluate` returned after the last block; None if it has none", default=None
    )
