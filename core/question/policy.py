"""Server policy: who may run, how much, and what visitors may change. Read from one TOML file.

The file is the one that `CROSSOVER_POLICY` names, else `crossover.toml` in the folder of streamlit_app.py. If there is
no file, the defaults apply, which suit a personal machine. A broken file allows nothing until it is fixed: neither a
mistake nor a power failure must ever open a host. A file is broken if it cannot be read, has an unknown key or value,
does not say who may run, or has disappeared. Every key is explained in docs/hosting.md. Nothing here identifies a
visitor; `pages.shared.permits` does.
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

from .. import units
from ..errors import CrossoverError, DamagedFile, InvalidValue, NotAllowed, require_choice
from ..files.documents import LARGEST_SETTING, domains, read_toml, require_number, require_stamp, require_type, ways
from ..files.project import SETTINGS_FOLDER
from .demonstrations import Demonstration
from .experiment import Experiment, Point
from .fields import FIELDS
from .models.operations import step_bytes, work
from .sweep import MAX_POINTS, Sweep

POLICY_VARIABLE = "CROSSOVER_POLICY"
"""Environment variable that names the settings file of a host; the file must exist."""

POLICY = SETTINGS_FOLDER / "crossover.toml"
"""Default settings file, which is optional."""

AnyQuestion = Experiment | Sweep | Demonstration
"""A question for the measuring process."""

CHOICES: dict[str, dict[str, str]] = {
    "who_may_run": {
        "everybody": "every visitor, within the budgets",
        "signed_in": "signed-in visitors",
        "nobody": "nobody; stored results stay visible",
    },
    "who_may_stop": {
        "anybody": "every visitor may stop every job",
        "asker": "only the visitor who submitted a job may stop it",
    },
    "class.create": {
        "anybody": "every visitor may create a class",
        "code": "visitors with the host's code, whose hash is `class.code_hash`",
        "command_line": "only users with a command line on the host",
    },
    "cluster.who_may_ask": {
        "everybody": "every visitor who may run something here",
        "signed_in": "signed-in visitors",
    },
}
"""Keys whose values are words, with the words and their meanings."""

_HASH = re.compile(r"scrypt\$[0-9a-f]{32}\$[0-9a-f]{64}")
BANNER_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class RunBudget:
    """Limits of one run.

    Attributes:
        seconds: limit of a run's time budget; for a sweep, plus the budget of one size.
        parameters: limit of the largest network.
        operations: limit of one step of the slowest training, in FLOP.
        memory_bytes: limit of the largest training: network, activations and samples.
        epochs: limit of the longest training.
        points: limit of the sizes of a sweep.
        compiled: whether compiled variants may run; compiling takes minutes, which no budget counts.
    """

    seconds: float = float(2 * FIELDS["budget_s"].high)
    parameters: int = LARGEST_SETTING
    operations: int = 10**18
    memory_bytes: int = 10**15
    epochs: int = int(FIELDS["epochs"].high)
    points: int = MAX_POINTS
    compiled: bool = True


@dataclass(frozen=True, kw_only=True)
class PersonBudget:
    """Limits of one person.

    Attributes:
        seconds_per_day: limit of measuring time per day (UTC); 0 for no limit.
        waiting: limit of jobs that wait or run at once; 0 for no limit.
    """

    seconds_per_day: float = 0.0
    waiting: int = 0


@dataclass(frozen=True, kw_only=True)
class ClassMode:
    """Settings of classes.

    Attributes:
        mode: whether there are classes.
        create: who may create a class on the page.
        code_hash: hash of the code that `create = "code"` requires; `python -m core class code` prints it.
    """

    mode: bool = True
    create: str = "anybody"
    code_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Other machines on which a page may measure a sweep.

    Attributes:
        on: offered clusters, in the form of `--on` of a sweep, such as `["ray"]`; empty for this machine only.
        who_may_ask: who of those who may measure here may measure there.
        host_names: whether visitors see the host names of these machines instead of numbers.
    """

    on: tuple[str, ...] = ()
    who_may_ask: str = "everybody"
    host_names: bool = False


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Server policy.

    Attributes:
        who_may_run: who may measure; required in a settings file.
        who_may_stop: who may end running or waiting jobs.
        sign_in_domains: allowed domains of a signed-in visitor's confirmed mail address; empty for all.
        read_only_gallery: whether files can only be exported, not imported.
        banner: up to 500 characters, shown on every page as unformatted text; empty for none.
        queue_length: maximum number of waiting jobs.
        run: limits of one run.
        person: limits of one person.
        classes: whether there are classes; `class` in the file.
        cluster: other machines on which a page may measure a sweep.
        fault: why nothing may run if the file is broken, in one sentence; otherwise empty.
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
        """Read the policy from a file.

        Raises:
            CrossoverError: the file cannot be read, a key or a value is unknown, or `who_may_run` is missing.
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
            raise CrossoverError(f"{path.name} does not say who may run something. Set who_may_run to one of {words}.")
        return held

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Parse the policy from the tables of a file.

        Raises:
            InvalidValue: a key or a value is unknown.
        """
        parts: dict[str, Any] = {"run": RunBudget, "person": PersonBudget, "class": ClassMode, "cluster": Cluster}
        allowed = {entry.name: entry for entry in dataclasses.fields(cls) if entry.name not in ("classes", "fault")}
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key in parts:
                name = "classes" if key == "class" else key
                values[name] = parts[key](**_check_table(key, parts[key], value))
            elif key in allowed:
                values[key] = _check_value(key, value, allowed[key].default)
            else:
                raise InvalidValue("key", key, "one of {}", sorted({*allowed, *parts}))
        policy = cls(**values)
        if policy.classes.create == "code" and not policy.classes.code_hash:
            raise InvalidValue("class.code_hash", "", 'what python -m core class code prints if class.create is "code"')
        return policy

    @classmethod
    def broken(cls, fault: str) -> Self:
        """Return the policy of a host whose file is broken: it allows nothing."""
        nothing = ClassMode(mode=False, create="command_line")
        return cls(who_may_run="nobody", who_may_stop="asker", read_only_gallery=True, classes=nothing, fault=fault)

    def check(self, question: AnyQuestion) -> None:
        """Check that a question is allowed.

        Raises:
            NotAllowed: it is not; the message names the exceeded budget.
        """
        self.check_open()
        check_custom_allowed(question)
        points = question_points(question)
        parameters, operations, fit, memory_bytes = (max(costs) for costs in zip(*map(_costs, points), strict=True))
        epochs = max(point.epochs for point in points)
        for does, may, value, limit, shown in (
            ("may take", "take", question_seconds(question), self.run.seconds, units.format_limit),
            ("has", "have", parameters, self.run.parameters, lambda value: f"{units.format_count(value)} parameters"),
            (
                "needs",
                "need",
                operations,
                self.run.operations,
                lambda value: f"{units.format_operations(value)} a step",
            ),
            (
                "needs",
                "need",
                fit,
                self.run.operations,
                lambda value: f"the work of {units.format_operations(value)} a step",
            ),
            (
                "needs",
                "need",
                memory_bytes,
                self.run.memory_bytes,
                lambda value: f"{units.format_memory(value)} of memory",
            ),
            ("has", "have", epochs, self.run.epochs, lambda value: f"{units.format_count(value)} epochs"),
            ("has", "have", len(points), self.run.points, lambda value: f"{units.format_count(value)} points"),
        ):
            if value > limit:
                raise NotAllowed(f"This run {does} {shown(value)}, but a run may {may} {shown(limit)} on this host.")
        if not self.run.compiled and any(contender.lane.execution == "compiled" for contender in question.contenders):
            raise NotAllowed("This host doesn't run compiled variants. Choose others.")

    def check_open(self) -> None:
        """Check that measuring is allowed on this host.

        Raises:
            NotAllowed: it is not.
        """
        if self.fault:
            raise NotAllowed(f"Nothing can be run here until the host's settings are fixed. {self.fault}")
        if self.who_may_run == "nobody":
            raise NotAllowed("This host runs nothing. Stored results stay visible.")


def question_seconds(question: AnyQuestion) -> float:
    """Return the maximum seconds of measuring of a question.

    A sweep ends with the point during which its budget runs out.
    """
    return question.budget_s + (question.point_budget_s if isinstance(question, Sweep) else 0.0)


def question_points(question: AnyQuestion) -> tuple[Point, ...]:
    """Return the trainings of a question."""
    return question.points if isinstance(question, Sweep) else (question.point,)


def check_custom_allowed(question: AnyQuestion) -> None:
    """Check whether a question may run if its training is a custom script, which is code.

    Raises:
        NotAllowed: a policy file exists here, so this machine is a host.
    """
    if question.point.training and (path := find_policy_file()):
        raise NotAllowed(f"Custom scripts are never run on a host, and {path.name} makes this machine one.")


def find_policy_file() -> Path | None:
    """Return the settings file of this host, whether it can be read or not; None without one."""
    return _look()[0]


def load_policy() -> Policy:
    """Return the present policy of this host.

    It allows nothing if the file is broken, or has disappeared.
    """
    path, seen = _look()
    if path is None:
        return Policy()
    _seen_files.add(path)
    try:
        return _load_policy_cached(path.absolute(), seen)
    except CrossoverError as error:
        return Policy.broken(str(error))


def _look() -> tuple[Path | None, tuple[int, ...]]:
    """Return the settings file of this host, with its stamp, which is empty if the file cannot be read."""
    named = os.environ.get(POLICY_VARIABLE, "")
    path = Path(named) if named else POLICY
    try:
        return path, require_stamp(path)
    except OSError as error:
        return path if named or path in _seen_files or not isinstance(error, FileNotFoundError) else None, ()


_seen_files: set[Path] = set()


@functools.lru_cache(maxsize=8)
def _load_policy_cached(path: Path, _stamp: tuple[int, ...]) -> Policy:
    """Load a policy. A file that cannot be read is not cached, because the failure may be temporary."""
    return Policy.load(path)


def _tables(path: Path) -> dict[str, Any]:
    try:
        data = read_toml(path)
    except DamagedFile as error:
        where = f" {error.__cause__}." if isinstance(error.__cause__, tomllib.TOMLDecodeError) else ""
        raise CrossoverError(f"{error}{where}") from error
    if data is None:
        raise CrossoverError(f"{path.name}, the settings file of this host, does not exist.")
    return data


@functools.lru_cache(maxsize=4096)
def _costs(point: Point) -> tuple[int, int, int, int]:
    """Return parameters, operations of a step, equivalent operations of a fit, and bytes; 0 for a custom script."""
    if point.training:
        return 0, 0, 0, 0
    network, needed = point.network, work(point)
    operations = (0, needed) if point.is_fit else (needed, 0)
    memory_bytes = step_bytes(point, point.batch_size) + point.samples * network.sample_bytes
    return network.parameters, *operations, memory_bytes


def _check_table(name: str, part: Any, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(name, value, f"a table, written [{name}]")
    known = {entry.name: entry.default for entry in dataclasses.fields(part)}
    for key in value:
        require_choice("key", f"{name}.{key}", (f"{name}.{entry}" for entry in known))
    return {key: _check_value(f"{name}.{key}", entry, known[key]) for key, entry in value.items()}


def _check_value(key: str, value: Any, default: object) -> Any:
    """Return a value of the same type as its default."""
    if key in CHOICES:
        return require_choice(key, value, CHOICES[key])
    match default:
        case bool():
            return require_type(key, value, bool, "true or false")
        case int() | float():
            return require_number(key, value, default)
        case tuple():
            return ways(key, value) if key == "cluster.on" else domains(key, value)
    text = str(require_type(key, value, str, "text"))
    if key == "class.code_hash" and text and not _HASH.fullmatch(text):
        raise InvalidValue(key, text, "what python -m core class code prints")
    if len(text) > BANNER_LENGTH:
        raise InvalidValue(key, text, f"text of at most {BANNER_LENGTH} characters")
    return text
