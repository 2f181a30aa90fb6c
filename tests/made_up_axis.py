"""A plugin for pytest: one entry more in the table of fields, put there before anything reads the table.

The rest of the project is as it is, so what a session with this plugin sees is what one entry is enough for.
"""

import sys
from importlib import util
from pathlib import Path

ENTRY = """
    warm_up: int = _asked(
        5,
        "warm-up steps",
        meaning="steps with a smaller learning rate",
        unit="steps",
        low=1,
        high=1_000,
        stops=(1, 2, 5, 10, 20, 50, 100),
        brief="warm-up {}",
        axis="size",
        place="a warm-up of {}",
        usual_range=(1, 100),
        usual_values=(5, 50),
        later=True,
    )
"""

_spec = util.find_spec("core.question.fields")
assert _spec is not None
assert _spec.origin is not None
_own, _end, _rest = Path(_spec.origin).read_text(encoding="utf-8").partition("\n\nTRAINING: ")
assert _end
_fields = util.module_from_spec(_spec)
sys.modules[_spec.name] = _fields
exec(compile(_own + ENTRY + _end + _rest, _spec.origin, "exec"), _fields.__dict__)
