"""What a card was hindered by while a row was timed, in sentences: other processes, its power, its heat, its memory.

No verdict hangs on it: a card that is as hot or as full whenever it is used was measured as it is. Whoever reads the
verdict has to know. What a card does not tell is not spoken of.
"""

from core import units
from core.question.device_kinds import capitalize_name
from core.question.experiment import inline_name
from core.results.schema import Trial

REASONS = {0x04: "its power limit", 0x60: "its heat", 0x88: "a lack of power or another brake of its hardware"}
"""Bits of nvmlClocksEventReasons that lower a clock under load → what did, for people."""


def gpu_notes(*trials: Trial) -> str:
    """Sentences on the cards of rows; empty where nothing hindered them, as far as they tell."""
    return " ".join(dict.fromkeys(sentence for trial in trials for sentence in _gpu_sentences(trial)))


def _gpu_sentences(trial: Trial) -> list[str]:
    said, all_blocks, card = [], len(trial.block_steps), inline_name(trial.device)
    if others := max(trial.block_other_processes, default=0):
        shared = _count_of_blocks(sum(count > 0 for count in trial.block_other_processes), all_blocks)
        who = f"up to {others} other processes" if others > 1 else "another process"
        longer = "so its times may be longer than they would be alone"
        said.append(f"{capitalize_name(card)} was shared with {who} in {shared}, {longer}.")
    lowered = {reason: sum(bool(bits & mask) for bits in trial.block_throttle) for mask, reason in REASONS.items()}
    said += [
        f"The clock of {card} was held down by {reason} after {_count_of_blocks(count, all_blocks)}."
        for reason, count in lowered.items()
        if count
    ]
    held_s = sum(trial.block_throttled_s)
    if held_s > 0 and not any(lowered.values()):
        said.append(f"The clock of {card} was held down for {units.format_duration(held_s)} while it was measured.")
    if trial.device_ecc_errors:
        errors = units.format_quantity(trial.device_ecc_errors, "memory error")
        said.append(
            f"{capitalize_name(card)} has had {errors} that could not be corrected, so what it computes may be wrong."
        )
    return said


def _count_of_blocks(count: int, every: int) -> str:
    return f"{count} of {units.format_quantity(every, 'block')}"
