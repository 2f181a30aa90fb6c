"""The control of lanes: other ways to run the same steps, beside plain ones, on the devices that are chosen.

Shows the words that the link, the command line and the store use. Which lanes there are is decided by
`core.question.lanes`, which of them a device has by what its measuring process said.
"""

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from core.errors import InvalidValue
from core.jobs.machine import Machine
from core.question import experiment, lanes
from core.question.experiment import Contender
from core.question.fields import Training, refused
from core.question.lanes import PLAIN, Lane
from pages.shared.draw.text import plain
from pages.shared.form import controls
from pages.shared.link import choices, memory

LANES_HELP = (
    "Other ways to run the same steps, measured in turns with plain ones on every chosen device. "
    "`compiled10`: ten steps in one compiled call. `graph`: a recorded CUDA graph. `fused`, `foreach`: the update in "
    "few operations. `kept`: memory that a step on the CPU frees is kept for the next. `micro250`: the batch in pieces "
    "that fit the cache. `bf16`, `tf32`: other mathematics."
)


def choose_lanes(machine: Machine | None, training: Training) -> list[str]:
    """Draw the control, once the machine is known; lanes that no device of it has are named with their reason."""
    if machine is None:
        return []
    wanted = {spell_lane(lane): lane for host in (True, False) for lane in lanes.worth_trying(training, on_host=host)}
    refused = {words: reason for words, lane in wanted.items() if (reason := _explain_missing_lane(lane, machine))}
    offered = [words for words in wanted if words not in refused]
    linked = controls.read_linked("lanes", lambda text: spell_lane(parse_lane(text)))
    options = list(dict.fromkeys([*offered, *filter(None, linked), *memory.read_chosen_lanes()]))
    if not options and not refused:  # a fit has none
        return []
    chosen = st.multiselect(
        "Lanes",
        options,
        placeholder="plain steps only",
        help=LANES_HELP,
        **choices.bind_choice("lanes", options, [], _title_lane),
    )
    if refused:
        reasons = {why: [_title_lane(words) for words in refused if refused[words] == why] for why in refused.values()}
        listed = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        st.caption(plain(f"Not on this machine: {listed}."))
    return sorted(chosen, key=options.index)


def apply_lanes(chosen: Sequence[str], words: Sequence[str], machine: Machine | None) -> list[str]:
    """Contenders with each chosen lane that their device has, the plain ones first; what is left out is said."""
    if machine is None:
        return []
    found, left_out = list(chosen), []
    for text in chosen:
        contender = Contender.parse(text)
        for each in words if contender.lane == PLAIN else ():
            lane = parse_lane(each)
            who = experiment.spoken(f"{text}+{each}")
            if reason := lanes.why_not(lane, machine.refusals[contender.device], who):
                left_out.append(reason)
            else:
                found.append(f"{text}+{spell_lane(lane)}")
    if left_out:
        st.caption(plain(" ".join(left_out)))
    return list(dict.fromkeys(found))


def refuse_lane_count(contenders: Sequence[str], words: Sequence[str]) -> str:
    """Why so many contenders cannot be measured together, in a sentence; empty if they can."""
    most = experiment.MAX_CONTENDERS
    if not words or len(contenders) <= most:
        return ""
    allowed = f"fewer: with these devices they make {len(contenders)} trainings to compare, and {most} fit into one run"
    return refused.on_page(InvalidValue("lanes", "; ".join(map(_title_lane, words)), allowed))


def parse_lane(text: str) -> Lane:
    """A lane of a link; raises InvalidValue where it is none."""
    return Lane.parse(re.findall(r"\w+", text))


def check_lanes(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a link with a lane that is none; raises InvalidValue."""
    for text in link.get("lanes", ()):
        parse_lane(text)


def spell_lane(lane: Lane) -> str:
    return "+".join(lane.words)


def _title_lane(words: str) -> str:
    return parse_lane(words).title


def _explain_missing_lane(lane: Lane, machine: Machine) -> str:
    """Why no device of a machine has a lane, to go on after a colon; empty if one has."""
    reasons = [
        next((refusals[kind] for kind in lane.kinds if kind in refusals), "") for refusals in machine.refusals.values()
    ]
    return reasons[0] if all(reasons) else ""
