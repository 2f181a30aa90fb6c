"""A namespace of processes of our own: what is signalled in it is ours, whatever goes wrong."""

import os
import shutil
import subprocess
import sys

MARK = "CROSSOVER_FUZZ_APART"
"""Variable of the environment that says that we are in one."""

# A process of its own stands first, as the first one of a namespace is not like others: signals pass it by, and its
# number is none that a worker may have.
FIRST = ("sh", "-c", '"$@"; exit $?', "sh")

WAYS = (
    ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"),
    ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"),
)


def go() -> None:
    """Begin this program anew in such a namespace, if there can be one; it does not come back then."""
    if MARK in os.environ or sys.platform != "linux" or not shutil.which("unshare"):
        return
    way = next(
        (way for way in WAYS if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0), None
    )
    if way:
        environment = {**os.environ, MARK: "1"}
        command = [*way, *FIRST, sys.executable, "-m", "tests.fuzz", *sys.argv[1:]]
        os.execvpe(command[0], command, environment)


def said() -> str:
    """Whether we are in one, for people."""
    return "in a namespace of processes of its own" if MARK in os.environ else "beside all other processes"
