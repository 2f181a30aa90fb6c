"""A machine at work for others whose measurements follow a script: `python -m core worker` with our scripted worker.

Started as `python -m tests.integration.scripted_node worker --store …`, with a folder of jobs and a lock of its own in
the environment. Leases are short, so that a test need not wait for those of who was killed; the environment may have
them shorter still.
"""

import os
import sys

from core import __main__ as command_line
from core.jobs import client
from core.jobs.shared import board, member, presence
from core.remote import local_cache
from core.results.quarantine import WithoutPandas
from tests.integration.scripted_worker import COMMAND

LEASE_VARIABLE = "CROSSOVER_TEST_LEASE_S"
"""Environment variable with the whole seconds of a lease; a machine that is slower than that loses what it holds."""

TELL_S, LOOK_S, LIST_EVERY_S, RETRY_AFTER_S = 1.0, 0.3, 0.2, 1.0

PRESENT_S = 20.0
"""After so long who asks such machines counts one that was killed no more; its lease has lapsed by then."""


def main() -> int:
    sys.meta_path.insert(0, WithoutPandas())
    client.COMMAND = COMMAND
    board.LEASE_S = int(os.environ.get(LEASE_VARIABLE, "15"))
    presence.TELL_S, member.LOOK_S = TELL_S, LOOK_S
    local_cache.LIST_EVERY_S, local_cache.RETRY_AFTER_S = LIST_EVERY_S, RETRY_AFTER_S
    return command_line.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
