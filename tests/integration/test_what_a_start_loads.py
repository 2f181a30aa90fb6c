"""What a machine that belongs to no cluster never notices: neither Ray nor a connection, nor what reaches a store."""

import os
import subprocess
import sys

import pytest

from core.files.project import PROJECT
from core.jobs.queue import Queue
from tests import nodes

APP = "from streamlit.testing.v1 import AppTest; AppTest.from_file('streamlit_app.py', default_timeout=300).run()"
FOREIGN = {"ray", "grpc", "boto3", "botocore", "fsspec", "s3fs", "gcsfs", "adlfs", "moto", "torch"}


@pytest.mark.slow
@pytest.mark.parametrize("start", ["from core.__main__ import parser; parser()", APP])
def test_neither_the_command_line_nor_the_app_loads_what_many_machines_need(start, tmp_path):
    told = (
        "import sys; from pyarrow import fs\n"
        "fs.S3FileSystem = fs.GcsFileSystem = fs.AzureFileSystem = lambda *_, **__: sys.exit('connected')\n"
        f"{start}\n"
        "print(*sorted(sys.modules))"
    )
    surroundings = {**os.environ, **nodes.surroundings(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=PROJECT, env=surroundings, capture_output=True, text=True, check=False
    )
    Queue(tmp_path / "jobs").worker_file.dismiss()
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert FOREIGN & loaded == set()
    remote = ("core.jobs.cluster_node", "core.remote.remote_store")
    assert start != APP or not {name for name in loaded if name.startswith(remote)}


def test_what_is_installed_by_default_names_nothing_of_a_cluster():
    lines = (PROJECT / "requirements.txt").read_text().splitlines()
    assert {line.partition(">")[0] for line in lines} & FOREIGN == {"torch"}
