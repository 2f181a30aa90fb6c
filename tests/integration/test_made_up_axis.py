"""An axis is one entry in `core.question.fields`: a session of its own has one more and looks for it everywhere."""

import subprocess
import sys

from core.files.project import PROJECT


def test_one_entry_brings_an_axis_to_forms_options_links_sentences_charts_and_columns():
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.made_up_axis", "tests/ui/axis_cases.py"]
    ended = subprocess.run([sys.executable, *words], cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "8 passed" in ended.stdout
