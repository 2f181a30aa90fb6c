"""A plugin for pytest: one entry more in the table of fields, put there before anything reads the table.

The rest of the project is as it is, so what a session with this plugin sees is what one entry is enough for.
"""

import sys
from collections.abc import Sequence
from importlib import util
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

ENTRY = """
    warm_up: int = field_with_spec(
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

NAME = "core.question.fields"


class _WithEntry(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        own, end, rest = Path(self.path).read_text(encoding="utf-8").partition("\n\nTRAINING: ")
        assert end
        return compile(own + ENTRY + end + rest, self.path, "exec")


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if fullname != NAME or path is None:
            return None
        file = str(Path(path[0]) / "fields.py")
        return util.spec_from_file_location(fullname, file, loader=_WithEntry(fullname, file))


assert NAME not in sys.modules
sys.meta_path.insert(0, _Finder())
