"""What a running measurement says of itself survives its file, whoever wrote it."""

import json

import pytest

from core.progress import ContenderProgress, Progress, SweepProgress

SWEEP = SweepProgress(done=2, total=9, size_label="hidden size 64", remaining_s=12.5, notes=("One did not fit.",))


@pytest.mark.parametrize("sweep", [None, SWEEP])
def test_progress_survives_its_file(sweep):
    contender = ContenderProgress(contender="cpu", losses=(0.5,), loss_steps=(10,), loss_seconds=(0.1,))
    told = Progress(phase="training", pairs=3, contenders=(contender,), sweep=sweep)
    assert Progress.from_json(json.loads(json.dumps(told.to_json()))) == told


def test_progress_of_an_earlier_version_knows_of_no_sweep():
    assert Progress.from_json({"phase": "training", "contenders": []}) == Progress(phase="training")
