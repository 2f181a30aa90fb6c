"""What a new server imports for its first page: neither Altair nor pandas, which take half a second together."""

import json
import os
import subprocess
import sys

from core.files.project import PROJECT
from core.jobs.queue import JOBS_VARIABLE, Queue
from pages.shared.queries import RESULTS_VARIABLE

VISIT = """
import json, sys
from pages.shared import server
server._import_pages()
from streamlit.testing.v1 import AppTest

def visit(page):
    app = AppTest.from_file("streamlit_app.py", default_timeout=300)
    if page:
        app.switch_page(page)
    assert not app.run().exception
    return {name: name in sys.modules for name in ("altair", "pandas")}

print(json.dumps([visit(""), visit("pages/gallery/gallery.py")]))
"""


def test_the_first_page_needs_neither_altair_nor_pandas_and_the_gallery_gets_its_data_frame(tmp_path):
    folders = {JOBS_VARIABLE: str(tmp_path / "jobs"), RESULTS_VARIABLE: str(tmp_path / "results")}
    done = subprocess.run(
        [sys.executable, "-c", VISIT], cwd=PROJECT, env={**os.environ, **folders}, capture_output=True, text=True
    )
    Queue(tmp_path / "jobs").worker_file.dismiss()
    assert done.returncode == 0, done.stderr
    first, gallery = json.loads(done.stdout.splitlines()[-1])
    assert first == {"altair": False, "pandas": False}
    assert gallery["pandas"]
