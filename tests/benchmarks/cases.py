"""Public cases that can be run here: the causes that each run names, whether the thread's is the first, the remedy.

    python -m tests.benchmarks.cases [--only NAME,NAME] [--devices cpu@1,cpu@2] [--json]

Each case is two trainings of at most half a minute each, one of them with the remedy. Rows go into a store of their
own, so nothing is answered from before. Exit status 1 if a case that a CPU can show names another cause.
"""

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

from core.answer.lessons import cases as answers
from core.answer.lessons.cases import Diagnosis, Gain
from core.commands.run import choose_contenders, require_machine
from core.errors import CrossoverError
from core.jobs import client
from core.jobs.queue import Queue
from core.question import published
from core.question.experiment import Contender, Experiment
from core.question.published import Case
from core.results import environment
from core.results.schema import Trial
from core.results.store import Store


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case."""

    name: str
    cause: str
    takes_a_gpu: bool
    found: Diagnosis
    gains: tuple[Gain, ...]

    @property
    def line(self) -> str:
        """The outcome in a row of a table."""
        place = f"no, place {self.found.place}" if self.found.place else "no"
        agrees = {True: "yes", False: place, None: "nothing named"}[self.found.agrees]
        named = ", ".join(one.kind or "large enough" for one in self.found.named) or "-"
        gains = ", ".join(f"{one.value:.2f}x" if one.value else "?" for one in self.gains) or "-"
        note = " (takes a GPU to see what it costs)" if self.takes_a_gpu else ""
        return f"{self.name:20} {self.cause:10} {agrees:14} {named:34} remedy {gains}{note}"


def run(case: Case, contenders: tuple[Contender, ...], queue: Queue, store: Store) -> Outcome:
    """Measure a case and its remedy; raises CrossoverError where that cannot be done."""
    runs = [_measured(asked, queue, store) for asked in case.build_experiments(contenders)]
    before, after = (*runs, [])[:2]
    found = answers.diagnose_case(case, before, after)
    gains = answers.remedy_gains(case, before, after)
    return Outcome(name=case.name, cause=case.cause, takes_a_gpu=bool(case.gpu), found=found, gains=gains)


def _measured(asked: Experiment, queue: Queue, store: Store) -> list[Trial]:
    return client.load_job_rows(queue, client.follow_job(queue, queue.submit(asked, store).id, lambda _: None))


def main() -> int:
    """Run the cases, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="names of cases, comma-separated")
    parser.add_argument("--devices", help="as of python -m core run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    queue = Queue()
    given = choose_contenders(options.devices, queue) if options.devices else ()
    devices, cores = require_machine(queue).device_names, environment.read_environment().cores_usable
    wanted = (
        options.only.split(",")
        if options.only
        else [case.name for case in published.load_cases().values() if case.runnable]
    )
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        for case in map(published.find_case, wanted):
            try:
                outcomes.append(run(case, given or case.contenders(devices, cores), queue, Store(Path(folder))))
            except CrossoverError as error:
                print(f"{case.name:20} failed: {error}", file=sys.stderr)
                continue
            if not options.json:
                print(outcomes[-1].line, flush=True)
                for one in outcomes[-1].found.named:
                    print(f"{'':20} {one.sentence}", flush=True)
    agreeing = sum(one.found.agrees is True for one in outcomes)
    if options.json:
        print(json.dumps([dataclasses.asdict(one) for one in outcomes], indent=2))
    print(f"{agreeing} of {len(wanted)} name the cause of their thread.", file=sys.stderr)
    named = {one.name for one in outcomes if one.found.agrees or one.takes_a_gpu}
    return int(named != set(wanted))


if __name__ == "__main__":
    sys.exit(main())
