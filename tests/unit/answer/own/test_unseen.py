"""What is said of steps in which PyTorch does nothing, as those of scikit-learn or XGBoost."""

from core.answer.custom_findings import CustomSteps, list_findings

NOTHING = CustomSteps(
    on_host=True,
    step_s=0.01,
    operations=(0, 0, 0),
    inside_s=(0.0,) * 3,
    float64_s=(0.0,) * 3,
    between_s=(0.0075,) * 3,
    floor_s=(2e-6, 3e-6, 2e-7),
)


def test_nothing_is_said_of_calls_that_are_none():
    assert NOTHING.costs == {}
    assert [found.kind for found in list_findings(NOTHING)] == ["unseen"]
