"""The pieces of a lesson: where rows were measured."""

from core.answer.export import handout
from tests import rows


def test_the_fingerprint_says_once_what_rows_agree_in_and_everything_they_do_not():
    facts = dict(handout.handout_environment([*rows.run(), *rows.run(run_id="ba9876543210", cpu_name="Another CPU")]))
    assert facts["Processor"] == "Test CPU, Another CPU"
    assert facts["torch"] == rows.TORCH_VERSION
    assert facts["Runs"] == f"{rows.RUN_ID}, ba9876543210"
    assert facts["Devices"] == "CPU: Test CPU, GPU: NVIDIA Test GPU"
    assert handout.handout_environment([]) == ()
