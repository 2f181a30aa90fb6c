"""What takes a worker's place once that has run code of others, started before it runs any.

Whoever it starts afterwards would have its environment, its limits, its mask of files and the signals that it ignores.
"""

import os
import sys

from core.errors import JobError
from core.jobs.client import COMMAND, start_detached
from core.jobs.queue import Queue

_WAITING = """
import os, sys, time
while os.getppid() == int(sys.argv[1]): time.sleep(0.2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def start(queue: Queue) -> int:
    """Start what waits until this process is gone, whatever becomes of it, and then is the next worker of a queue.

    Returns:
        The number of its process; 0 where the system does not tell a child that its parent is gone.

    Raises:
        JobError: no process can be started.
    """
    if sys.platform == "win32":
        return 0
    try:
        with queue.worker_file.log.open("ab") as log:
            words = ["-S", "-c", _WAITING, str(os.getpid()), *COMMAND[1:], "--jobs", str(queue.folder)]
            return start_detached([sys.executable, *words], os.environ, log).pid
    except OSError as error:
        raise JobError(f"The next measuring process could not be started: {error}.") from error
