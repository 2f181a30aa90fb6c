import pytest

from core.question import custom, presets
from core.question.experiment import Contender, Point


@pytest.mark.parametrize(
    ("devices", "cores", "expected"),
    [
        (["cpu"], 2, ["cpu@1", "cpu@2"]),
        (["cpu"], 64, ["cpu@1", "cpu@64"]),
        (["cpu"], 1, ["cpu@1"]),
        (["cpu", "cuda:0"], 2, ["cpu", "cuda:0"]),
        (["cpu", "xpu:0", "cuda:0"], 1, ["cpu", "xpu:0"]),
    ],
)
def test_who_contends_where_nobody_said(devices, cores, expected):
    assert list(map(str, presets.default_contenders(devices, cores))) == expected


def test_each_device_contends_with_the_lanes_that_may_help_it_as_far_as_there_is_room():
    point = Point(training="mine.py:build", source_hash="0" * 16, size=8, **custom.SETTLED)
    refusals = {"cpu": {"bf16": "it has not"}, "cuda:0": {}}
    asked = tuple(map(Contender.parse, ("cpu@1", "cuda:0")))
    assert list(map(str, presets.with_remedies(asked, point, refusals))) == [
        *("cpu@1", "cpu@1+compiled", "cpu@1+kept"),
        *("cuda:0", "cuda:0+compiled", "cuda:0+bf16", "cuda:0+tf32"),
    ]
    many = presets.with_remedies(tuple(map(Contender.parse, ("cpu@1", "cpu@2", "cpu@4"))), Point(), refusals)
    assert [each.threads for each in many] == [1, 1, 2, 2, 4, 4]
