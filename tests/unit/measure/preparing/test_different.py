import pytest

from core.errors import SameTraining
from core.measure import preflight
from core.question.experiment import Contender


def contenders(text):
    return [Contender.parse(part) for part in text.split()]


@pytest.mark.parametrize(
    ("asked", "threads"),
    [
        ("cpu@1 cpu", (1, 2)),
        ("cpu cpu+compiled", (1, 1)),
        ("cpu cuda:0", (1, 1)),
        ("cpu", (1,)),
        ("cpu@1 cpu cpu@2", (1, 1, 2)),
        ("", ()),
    ],
)
def test_contenders_that_differ_are_compared(asked, threads):
    preflight.check_distinct(contenders(asked), threads)


@pytest.mark.parametrize(("asked", "threads"), [("cpu@1 cpu", (1, 1)), ("cuda:0 cuda:0@2", (2, 2))])
def test_a_training_is_not_compared_with_itself(asked, threads):
    with pytest.raises(SameTraining) as raised:
        preflight.check_distinct(contenders(asked), threads)
    named = " and ".join(asked.split())
    counted = "1 thread" if threads[0] == 1 else "2 threads"
    assert str(raised.value).startswith(
        f"Nothing was measured: {named} turned out to be the same training on {counted}."
    )
