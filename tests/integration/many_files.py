"""Checks many foreign files in one process, as the child of `core.results.quarantine` checks one; for the fuzz test.

Reads names of files from standard input, writes a line of JSON for each, and keeps the rows of an accepted one.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa

from core.errors import ForeignFile
from core.results import quarantine
from core.results.schema import SCHEMA

if __name__ == "__main__":
    quarantine._limit()
    for line in sys.stdin:
        file = Path(line.strip())
        print(json.dumps({"begun": file.name}), flush=True)
        reason = ""
        try:
            table = quarantine.checked(file.read_bytes())
            with pa.ipc.new_stream(str(file.with_suffix(".rows")), SCHEMA) as stream:
                stream.write_table(table)
        except ForeignFile as error:
            reason = str(error)
        print(json.dumps({"done": file.name, "reason": reason}), flush=True)
