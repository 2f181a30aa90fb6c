"""`app`: open the pages in the browser."""

import argparse
import runpy
import sys
from typing import Any

from ..errors import CrossoverError
from ..files.project import PROJECT
from . import COMMAND_HELP, OK

APP = PROJECT / "streamlit_app.py"


def add_app_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("app", help=COMMAND_HELP["app"])
    parser.add_argument(
        "--training",
        metavar="PATH",
        help="Python file, or folder of files, that the pages offer as custom trainings (default: none)",
    )
    parser.add_argument(
        "streamlit",
        nargs="*",
        metavar="OPTION",
        help="options of `streamlit run`, after --: -- --server.port=8600 (default: none)",
    )
    parser.set_defaults(command=open_app)


def open_app(options: argparse.Namespace) -> int:
    """Run the app's server in this process until it is stopped."""
    words = ["--", "--training", options.training] if options.training else []
    sys.argv = ["streamlit", "run", str(APP), *options.streamlit, *words]
    try:
        runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
    except ImportError as error:
        raise CrossoverError("The app needs Streamlit, which is not installed. Run: pip install streamlit") from error
    except SystemExit as ended:
        return int(ended.code or OK)
    return OK
