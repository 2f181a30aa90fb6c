"""The two processes of a sweep on a cluster, with measurements that follow a script.

As `python -m tests.integration.scripted_node` that of a machine, with our scripted worker; with `--jobs FOLDER` the
driver, which starts the other on each machine.
"""

import sys

from core.jobs import client, cluster, cluster_node
from core.results.quarantine import WithoutPandas
from tests.integration.scripted_worker import COMMAND

DRIVER = (sys.executable, "-m", "tests.integration.scripted_node")


def main() -> int:
    sys.meta_path.insert(0, WithoutPandas())
    client.COMMAND = COMMAND
    if len(sys.argv) == 1:
        return cluster_node.main()
    cluster.NODE_MODULE, cluster.AGAIN_S = "tests.integration.scripted_node", 1.0
    cluster.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
