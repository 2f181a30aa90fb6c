"""The app on a port, whose measurements follow a script: `python -m tests.benchmarks.scripted_server PORT`.

With `--trains` after the port it measures real trainings.
"""

import sys

from streamlit.web import cli

from core.files.project import PROJECT
from core.jobs import client
from tests.integration import scripted_worker

OPTIONS = ("--server.headless", "true", "--server.address", "127.0.0.1")

if __name__ == "__main__":
    if "--trains" not in sys.argv:
        client.COMMAND = scripted_worker.COMMAND
    sys.argv = ["streamlit", "run", str(PROJECT / "streamlit_app.py"), "--server.port", sys.argv[1], *OPTIONS]
    cli.main()
