"""Raw values: what was read while a contender was measured, and afterwards."""

from dataclasses import dataclass

from core.results.columns.column import BOOL, BYTES, FLOAT, FLOATS, INT, INTS, column


@dataclass(frozen=True, kw_only=True)
class RawValues:
    """Lists named `block_*` have one entry per timed block in the order of time; empty lists and None: not measured."""

    steps: int = column(INT, "steps trained, at most epochs × steps_per_epoch are part of the result", default=0)
    warmup_steps: tuple[int, ...] = column(INTS, "steps of each warm-up block", unit="steps", default=())
    warmup_s: tuple[float, ...] = column(FLOATS, "its time", unit="s", default=())
    block_pair: tuple[int, ...] = column(INTS, "round in which the block was measured; equal numbers pair", default=())
    block_first_step: tuple[int, ...] = column(
        INTS,
        "steps trained before the timed part of the block; past epochs × steps_per_epoch, training went on",
        default=(),
    )
    block_steps: tuple[int, ...] = column(INTS, "steps timed in the block", unit="steps", default=())
    block_begin_ns: tuple[int, ...] = column(INTS, "clock reading before", unit="ns, monotonic", default=())
    block_end_ns: tuple[int, ...] = column(INTS, "clock reading after", unit="ns, monotonic", default=())
    block_load: tuple[float, ...] = column(FLOATS, "load average over one minute after the block", default=())
    block_steal: tuple[float, ...] = column(
        FLOATS, "share of processor time taken by other guests of the host since the block before", default=()
    )
    block_switches: tuple[int, ...] = column(
        INTS, "involuntary context switches of the process in the block and its lead-in", default=()
    )
    block_clock_before_mhz: tuple[float, ...] = column(
        FLOATS,
        "clock of the accelerator before the lead-in; empty, as all that cards tell, where it cannot be read",
        unit="MHz",
        default=(),
    )
    block_clock_mhz: tuple[float, ...] = column(
        FLOATS, "clock of the accelerator after the block; empty where it cannot be read", unit="MHz", default=()
    )
    block_power_w: tuple[float, ...] = column(
        FLOATS,
        "mean power of the card in the block and its lead-in, by its energy counter; if it has none, the power after",
        unit="W",
        default=(),
    )
    block_temperature_c: tuple[float, ...] = column(
        FLOATS, "temperature of the card after the block", unit="°C", default=()
    )
    block_throttle: tuple[int, ...] = column(
        INTS, "what held the card's clock down after the block", unit="bits of nvmlClocksEventReasons", default=()
    )
    block_throttled_s: tuple[float, ...] = column(
        FLOATS,
        "for how long power, heat or the board lowered the card's clocks in the block and its lead-in, added up",
        unit="s",
        default=(),
    )
    block_use_before: tuple[float, ...] = column(
        FLOATS,
        "share of the last second or less before the lead-in in which the card worked, for whomever",
        default=(),
    )
    block_other_processes: tuple[int, ...] = column(
        INTS,
        "other processes that computed on the card around the block, as far as they can be seen",
        unit="processes",
        default=(),
    )
    resumed_at_block: tuple[int, ...] = column(
        INTS, "blocks before which another process took the training over from saved weights", default=()
    )
    loss_step: tuple[int, ...] = column(INTS, "last step of each segment of the loss curve", unit="steps", default=())
    loss: tuple[float, ...] = column(FLOATS, "mean training loss of each segment", unit="nats", default=())
    startup_device_s: float | None = column(
        FLOAT, "first use of the device: context, libraries, one small step", unit="s", default=None
    )
    startup_fresh: bool = column(
        BOOL,
        "whether the first use was in a process of its own, with this kind of layers alone; otherwise it was in the "
        "measuring process, which may have used another device or other layers before",
        default=False,
    )
    startup_build_s: float | None = column(FLOAT, "building the model on the device", unit="s", default=None)
    startup_transfer_s: float | None = column(FLOAT, "copying resident data to the device", unit="s", default=None)
    startup_compile_s: float | None = column(
        FLOAT,
        "compiling the step with empty caches, or recording its CUDA graph; 0 in an eager lane",
        unit="s",
        default=None,
    )
    startup_compile_served: bool = column(
        BOOL,
        "whether compiled code came from this machine's disk; startup_compile_s is then what compiling took when that "
        "code was made, with empty caches",
        default=False,
    )
    startup_first_step_s: float | None = column(
        FLOAT,
        "the first step of this training; the first call in a lane of several steps a call",
        unit="s",
        default=None,
    )
    lane_loss: tuple[float, ...] = column(
        FLOATS, "training loss of the first steps in this lane, from the first weights on", unit="nats", default=()
    )
    reference_loss: tuple[float, ...] = column(
        FLOATS,
        "the same steps in plain eager fp32 on the same device; both are empty where that is the lane itself",
        unit="nats",
        default=(),
    )
    nudged_loss: tuple[float, ...] = column(
        FLOATS,
        "the same plain steps from first weights that were moved by some roundings each: how far training carries "
        "rounding on by itself; empty where the mathematics are other",
        unit="nats",
        default=(),
    )
    turns_step_s: tuple[float, ...] = column(
        FLOATS, "steps as they are, in turns with those of the next two columns", unit="s per step", default=()
    )
    float32_step_s: tuple[float, ...] = column(
        FLOATS, "the same steps in float32, where they are in float64", unit="s per step", default=()
    )
    doubled_step_s: tuple[float, ...] = column(
        FLOATS,
        "fits of gradient boosting with every row taken twice: what takes no longer then does not depend on rows",
        unit="s per step",
        default=(),
    )
    epoch_check_s: float | None = column(
        FLOAT, "one whole epoch trained in one piece afterwards, to check the blocks", unit="s", default=None
    )
    breakdown_loader_s: tuple[float, ...] = column(FLOATS, "making each batch", unit="s per step", default=())
    breakdown_transfer_s: tuple[float, ...] = column(
        FLOATS, "host-to-device transfer of each batch", unit="s per step", default=()
    )
    breakdown_forward_s: tuple[float, ...] = column(FLOATS, "forward pass and loss", unit="s per step", default=())
    breakdown_backward_s: tuple[float, ...] = column(FLOATS, "backward pass", unit="s per step", default=())
    breakdown_optimizer_s: tuple[float, ...] = column(
        FLOATS, "clearing gradients and updating weights", unit="s per step", default=()
    )
    busy_step_s: tuple[float, ...] = column(
        FLOATS,
        "time for which the accelerator is busy with forward, backward and update when it never waits for the host; "
        "empty on a CPU",
        unit="s per step",
        default=(),
    )
    train_accuracy: float | None = column(
        FLOAT, "share of right answers on the training samples, the first 10,000 at most", default=None
    )
    validation_accuracy: float | None = column(FLOAT, "share of right answers on the validation samples", default=None)
    tested_step: int = column(
        INT,
        "steps after which it was tested, where contenders of a run ended after different ones; 0: all that count",
        unit="steps",
        default=0,
    )
    confusion: tuple[int, ...] = column(
        INTS, "test items by true class (rows) and predicted class (columns), row by row", unit="items", default=()
    )
    predictions: bytes = column(BYTES, "predicted class of every test item, one byte each, in order", default=b"")
