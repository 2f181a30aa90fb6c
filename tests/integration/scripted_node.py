"""A machine at work for others whose measurements follow a script: `python -m core worker` with our scripted worker.

Started as `python -m tests.integration.scripted_node worker --store …`, with a folder of jobs and a lock of its own in
the environment. Leases are short, so that a test need not wait for those of who was killed.
"""

import sys

from core import __main__ as command_line
from core.files.shared import mirror
from core.jobs import client
from core.jobs.shared import board, member, presence
from tests.integration.scripted_worker import COMMAND

LEASE_S, TELL_S, LOOK_S, BRING_EVERY_S = 15, 1.0, 0.3, 0.2


def main() -> int:
    client.COMMAND = COMMAND
    board.LEASE_S, presence.TELL_S, member.LOOK_S, mirror.BRING_EVERY_S = LEASE_S, TELL_S, LOOK_S, BRING_EVERY_S
    return command_line.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
