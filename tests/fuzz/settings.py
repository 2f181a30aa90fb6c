"""The host's settings: who reads them, and what they then let anybody do."""

import contextlib
from random import Random

from core.errors import CrossoverError
from core.question import policy
from core.question.policy import Policy
from tests import rows
from tests.fuzz import worlds
from tests.fuzz.files import Kind
from tests.fuzz.watching import Fault, require_sentence, said
from tests.fuzz.worlds import Inhabited


def _look_at_the_settings(world: Inhabited, place: str) -> bool:
    held = policy.load_policy()
    broken = said(lambda: Policy.load(world.settings)) is None
    if broken != bool(held.fault):
        raise Fault(f"the settings hold although they cannot be read, or the other way: {held}")
    if broken and (held.who_may_run, held.classes.mode, held.read_only_gallery) != ("nobody", False, True):
        raise Fault(f"broken settings allow something: {held}")
    if held.fault:
        require_sentence(held.fault)
    said(lambda: held.check(rows.EXPERIMENT))
    said(held.check_open)
    return not broken


def _go_on_with_the_settings(world: Inhabited, draw: Random) -> None:
    for asked in (rows.EXPERIMENT, worlds.ASKED):
        with contextlib.suppress(CrossoverError):
            policy.load_policy().check(asked)


KINDS = (
    Kind(
        name="policy",
        places=("crossover.toml",),
        look=_look_at_the_settings,
        views=("compare", "crossover", "devices", "lessons", "tutorials", "class", "gallery"),
        act=_go_on_with_the_settings,
    ),
)
