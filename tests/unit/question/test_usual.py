import pytest

from core.question import usual


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
    assert list(map(str, usual.contenders(devices, cores))) == expected
