"""What a host allows its visitors: who may run, how much, and what they may change. Read from one TOML file.

The file is the one that `CROSSOVER_POLICY` names, else `crossover.toml` beside streamlit_app.py, else there is none and
the defaults hold, which suit one's own machine. A file that cannot be read, that holds a key or a value that is not
known, that does not say who may run, or that is gone, allows nothing at all until it is mended: neither a mistake nor
a loss of power must ever open a host. Every key is explained in docs/class-mode.md. Nothing here knows a visitor; who
asks is found out in `pages.shared.frame.permits`.
"""

import dataclasses
import functools
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from core import units
from core.errors import CrossoverError, DamagedFile, InvalidValue, NotAllowed, one_of
from core.files.documents import linked_stamp, read_toml
from core.files.project import PROJECT
from core.files.settings import LARGEST, domains, number, typed, ways
from core.question.demonstration import Demonstration
from core.question.experiment import Experiment, Point
from core.question.fields import FIELDS
from core.question.models import cost
from core.question.sweep import MAX_POINTS, Sweep

POLICY_VARIABLE = "CROSSOVER_POLICY"
"""Environment variable that names the settings file of a host; a file that it names must be there."""

POLICY = PROJECT / "crossover.toml"
"""The file that is read if the environment names none, and if it is there."""

Asked = Experiment | Sweep | Demonstration
"""What can be asked of the measuring process."""

CHOICES: dict[str, dict[str, str]] = {
    "who_may_run": {
        "everybody": "whoever can open the page, within the budgets",
        "signed_in": "whoever has signed in through the host's login",
        "nobody": "nobody; what is stored can be looked at",
    },
    "who_may_stop": {
        "anybody": "every visitor may stop every job",
        "asker": "only whoever asked for a job may stop it",
    },
    "class.create": {
        "anybody": "every visitor may make a class",
        "code": "whoever knows the host's code, of which `class.code_hash` is kept",
        "command_line": "only whoever has a command line on the host",
    },
    "cluster.who_may_ask": {
        "everybody": "whoever may run something here",
        "signed_in": "whoever has signed in through the host's login",
    },
}
"""Keys that take a word, with the words and what they mean."""

_HASH = re.compile(r"scrypt\$[0-9a-f]{32}\$[0-9a-f]{64}")
BANNER_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class RunBudget:
    """What one run may ask for.

    Attributes:
        seconds: most seconds of measuring, as the run's own budget has it; of a sweep with one point on top.
        parameters: most of the largest network.
        operations: most of one step of the slowest training, in FLOP: parameters times batch, as it were.
        memory_bytes: most of the largest training: network, what a step keeps of its batch, and the samples.
        epochs: most of the longest training.
        points: most of a sweep.
        compiled: whether lanes that compile first may run; compiling takes minutes, which no budget counts.
    """

    seconds: float = float(2 * FIELDS["budget_s"].high)
    parameters: int = LARGEST
    operations: int = 10**18
    memory_bytes: int = 10**15
    epochs: int = int(FIELDS["epochs"].high)
    points: int = MAX_POINTS
    compiled: bool = True


@dataclass(frozen=True, kw_only=True)
class PersonBudget:
    """What one person may ask for.

    Attributes:
        seconds_per_day: most of measuring in a day (UTC); 0 for no limit.
        waiting: most jobs that wait or run at once; 0 for no limit.
    """

    seconds_per_day: float = 0.0
    waiting: int = 0


@dataclass(frozen=True, kw_only=True)
class ClassMode:
    """Whether there are classes here.

    Attributes:
        mode: whether there are classes.
        create: who may make a class on the page.
        code_hash: of the code that `create = "code"` asks for, as `python -m core class code` prints it.
    """

    mode: bool = True
    create: str = "anybody"
    code_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Which other machines a page may have a sweep measured on.

    Attributes:
        on: what is offered, as `--on` of a sweep has it, such as `["ray"]`; empty: this machine alone.
        who_may_ask: who may have a sweep measured there, of those who may measure here.
        host_names: whether visitors see the names of these machines' hosts, and not a number of each.
    """

    on: tuple[str, ...] = ()
    who_may_ask: str = "everybody"
    host_names: bool = False


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a host allows.

    Attributes:
        who_may_run: who may measure; a settings file must say it.
        who_may_stop: who may end what is measured or waits.
        sign_in_domains: domains of which a signed-in visitor's confirmed mail address must be; empty for all.
        read_only_gallery: whether files can only be taken, not brought.
        banner: up to 500 characters, shown on every page as plain text; empty for none.
        queue_length: most jobs that wait at once.
        run: what one run may ask for.
        person: what one person may ask for.
        classes: whether there are classes; `class` in the file.
        cluster: which other machines a page may have a sweep measured on.
        fault: why nothing may run, in one sentence, where the file is broken; empty otherwise.
    """

    who_may_run: str = "everybody"
    who_may_stop: str = "anybody"
    sign_in_domains: tuple[str, ...] = ()
    read_only_gallery: bool = False
    banner: str = ""
    queue_length: int = 100
    run: RunBudget = field(default_factory=RunBudget)
    person: PersonBudget = field(default_factory=PersonBudget)
    classes: ClassMode = field(default_factory=ClassMode)
    cluster: Cluster = field(default_factory=Cluster)
    fault: str = ""

    @classmethod
    def load(cls, path: Path) -> Self:
        """The policy in a file.

        Raises:
            CrossoverError: it cannot be read, a key or a value is not known, or it does not say who may run something.
        """
        data = _tables(path)
        try:
            held = cls.parse(data)
        except InvalidValue as error:
            raise CrossoverError(f"In {path.name}: {error}") from error
        except (ValueError, RecursionError) as error:  # of a number or a list that cannot even be written down
            raise CrossoverError(f"In {path.name}: a value is too large or nested too deeply.") from error
        if "who_may_run" not in data:
            words = ", ".join(f'"{word}"' for word in CHOICES["who_may_run"])
            raise CrossoverError(f"{path.name} does not say who may run something: write who_may_run = one of {words}.")
        return held

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """The policy in the tables of a file.

        Raises:
            InvalidValue: a key or a value is not known.
        """
        parts: dict[str, Any] = {"run": RunBudget, "person": PersonBudget, "class": ClassMode, "cluster": Cluster}
        allowed = {entry.name: entry for entry in dataclasses.fields(cls) if entry.name not in ("classes", "fault")}
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key in parts:
                name = "classes" if key == "class" else key
                values[name] = parts[key](**_table(key, parts[key], value))
            elif key in allowed:
                values[key] = _checked(key, value, allowed[key].default)
            else:
                raise InvalidValue("key", key, "one of {}", sorted({*allowed, *parts}))
        policy = cls(**values)
        if policy.classes.create == "code" and not policy.classes.code_hash:
            raise InvalidValue("class.code_hash", "", 'what python -m core class code prints if class.create is "code"')
        return policy

    @classmethod
    def broken(cls, fault: str) -> Self:
        """The policy of a host whose file is broken: nothing."""
        nothing = ClassMode(mode=False, create="command_line")
        return cls(who_may_run="nobody", who_may_stop="asker", read_only_gallery=True, classes=nothing, fault=fault)

    def check(self, asked: Asked) -> None:
        """Find out whether anybody may ask this.

        Raises:
            NotAllowed: nobody may, with the budget that it exceeds.
        """
        self.check_open()
        check_own(asked)
        points = points_of(asked)
        parameters, operations, fit, memory_bytes = (max(costs) for costs in zip(*map(_costs, points), strict=True))
        epochs = max(point.epochs for point in points)
        for does, may, value, limit, shown in (
            ("may take", "take", seconds(asked), self.run.seconds, units.limit),
            ("has", "have", parameters, self.run.parameters, lambda value: f"{units.count(value)} parameters"),
            ("needs", "need", operations, self.run.operations, lambda value: f"{units.operations(value)} a step"),
            ("needs", "need", fit, self.run.operations, lambda value: f"the work of {units.operations(value)} a step"),
            ("needs", "need", memory_bytes, self.run.memory_bytes, lambda value: f"{units.memory(value)} of memory"),
            ("has", "have", epochs, self.run.epochs, lambda value: f"{units.count(value)} epochs"),
            ("has", "have", len(points), self.run.points, lambda value: f"{units.count(value)} points"),
        ):
            if value > limit:
                raise NotAllowed(f"This run {does} {shown(value)}, and a run may {may} {shown(limit)} on this host.")
        if not self.run.compiled and any(contender.lane.execution == "compiled" for contender in asked.contenders):
            raise NotAllowed("Compiled lanes cannot be run on this host; the others can.")

    def check_open(self) -> None:
        """Find out whether anything may be run here.

        Raises:
            NotAllowed: nothing may.
        """
        if self.fault:
            raise NotAllowed(f"Nothing can be run here until the host's settings are mended. {self.fault}")
        if self.who_may_run == "nobody":
            raise NotAllowed("Nothing can be run on this host; what is stored can be looked at.")


def seconds(asked: Asked) -> float:
    """Most seconds of measuring that a question asks for; a sweep ends with the point in which its budget does."""
    return asked.budget_s + (asked.point_budget_s if isinstance(asked, Sweep) else 0.0)


def points_of(asked: Asked) -> tuple[Point, ...]:
    """The trainings of a question."""
    return asked.points if isinstance(asked, Sweep) else (asked.point,)


def check_own(asked: Asked) -> None:
    """Find out whether the training of a question may be run if it is one's own, which is code.

    Raises:
        NotAllowed: a file here says what visitors may do, so this is not one's own machine.
    """
    if asked.point.training and (path := file()):
        raise NotAllowed(f"A training of one's own is never run on a host, and {path.name} makes this machine one.")


def file() -> Path | None:
    """The file that holds here, whether it can be read or not; None where there is none."""
    return _look()[0]


def current() -> Policy:
    """The policy of this host, as its file is now; one that allows nothing where the file is broken, or gone since."""
    path, seen = _look()
    if path is None:
        return Policy()
    _held.add(path)
    try:
        return _loaded(path.absolute(), seen)
    except CrossoverError as error:
        return Policy.broken(str(error))


def _look() -> tuple[Path | None, tuple[int, ...]]:
    """The file that holds here, with its stamp, which is empty where it cannot be looked at."""
    named = os.environ.get(POLICY_VARIABLE, "")
    path = Path(named) if named else POLICY
    try:
        return path, linked_stamp(path)
    except OSError as error:
        return path if named or path in _held or not isinstance(error, FileNotFoundError) else None, ()


_held: set[Path] = set()


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, _stamp: tuple[int, ...]) -> Policy:
    """What cannot be read is not kept: it may be because nothing could be read for a moment."""
    return Policy.load(path)


def _tables(path: Path) -> dict[str, Any]:
    try:
        data = read_toml(path)
    except DamagedFile as error:
        where = f" {error.__cause__}." if isinstance(error.__cause__, tomllib.TOMLDecodeError) else ""
        raise CrossoverError(f"{error}{where}") from error
    if data is None:
        raise CrossoverError(f"{path.name}, which holds what this host allows, is not there.")
    return data


@functools.lru_cache(maxsize=4096)
def _costs(point: Point) -> tuple[int, int, int, int]:
    """Parameters, operations of a step, what stands for those of a fit, and bytes; 0 of one's own training."""
    if point.training:
        return 0, 0, 0, 0
    network, needed = point.network, cost.work(point)
    operations = (0, needed) if point.is_fit else (needed, 0)
    memory_bytes = cost.step_bytes(point, point.batch_size) + point.samples * network.sample_bytes
    return network.parameters, *operations, memory_bytes


def _table(name: str, part: Any, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(name, value, f"a table, written [{name}]")
    known = {entry.name: entry.default for entry in dataclasses.fields(part)}
    for key in value:
        one_of("key", f"{name}.{key}", (f"{name}.{entry}" for entry in known))
    return {key: _checked(f"{name}.{key}", entry, known[key]) for key, entry in value.items()}


def _checked(key: str, value: Any, default: object) -> Any:
    """A value of the type that its default has."""
    if key in CHOICES:
        return one_of(key, value, CHOICES[key])
    match default:
        case bool():
            return typed(key, value, bool, "true or false")
        case int() | float():
            return number(key, value, default)
        case tuple():
            return ways(key, value) if key == "cluster.on" else domains(key, value)
    text = str(typed(key, value, str, "text"))
    if key == "class.code_hash" and text and not _HASH.fullmatch(text):
        raise InvalidValue(key, text, "what python -m core class code prints")
    if len(text) > BANNER_LENGTH:
        raise InvalidValue(key, text, f"text of at most {BANNER_LENGTH} characters")
    return text
