"""The table of device kinds: what each entry must say, and that one entry is all that a new kind needs."""

import re
import subprocess
import sys

import pytest

from core.files.project import PROJECT
from core.measure import devices
from core.question.experiment import Contender
from core.question.lanes import DEVICE_KINDS, DEVICES
from core.results.environment import DeviceInfo
from core.results.validation import FORMS

WITH_ANOTHER = """
import importlib.util, sys
from dataclasses import replace
from types import SimpleNamespace

spec = importlib.util.find_spec("core.question.lanes")
table = "DEVICE_KINDS: dict[str, DeviceKind] = {"
source = spec.loader.get_source(spec.name)
assert table in source
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
entry = "'npu': DeviceKind(title='NPU', torch_type='npu', colour='#123456', graphs=True),"
exec(source.replace(table, table + entry), vars(module))

import torch
from core.answer.charts import look
from core.answer.lessons import limits
from core.measure import devices
from core.question.experiment import Contender
from core.results import environment
from core.results import validation
from core.results.parquet import to_table
from tests.rows import trial

card = SimpleNamespace(name="Made-up card", total_memory=2**33)
torch.accelerator.current_accelerator = lambda check_available: SimpleNamespace(type="npu")
torch.accelerator.device_count = lambda: 2
torch.get_device_module = lambda _: SimpleNamespace(get_device_properties=lambda _: card)
first, second = devices.discover()[1:]
print(first.device, second.device, second.kind, second.name, second.memory_bytes, "graph" in second.refusals)
print(Contender.parse("npu+graph10"), look.DEVICE_COLOURS["npu"])
row = replace(trial(contender="cuda:1"), contender="npu:1", device="npu:1", device_kind="npu")
validation.validate_rows(to_table([row]))
print(limits.summarize_launches(row).operations > 0)
"""


@pytest.mark.parametrize("kind", DEVICE_KINDS)
def test_every_kind_is_asked_for_described_refused_and_drawn_by_its_entry(kind):
    facts = DEVICE_KINDS[kind]
    device = f"{facts.torch_type}:3" if facts.numbered else facts.torch_type
    assert Contender.parse(f"{device}@2").device == device
    assert Contender(device=facts.torch_type).device == device.replace("3", "0")
    assert re.fullmatch(FORMS["device"].pattern, device)
    assert device.replace("3", "N") in DEVICES
    assert re.fullmatch("#[0-9A-F]{6}", facts.colour)
    refusals = devices.refusals(kind, (9, 0))
    assert ("graph" in refusals, "tf32" in refusals) == (not facts.graphs, not facts.tf32)
    assert ("bf16" in refusals, "kept" in refusals or kind == "cpu") == (not facts.bf16, True)
    assert DeviceInfo(device=device, kind=kind, name="one", memory_bytes=1, refusals=refusals).kind == kind


def test_no_two_kinds_have_one_colour():
    assert len({facts.colour for facts in DEVICE_KINDS.values()}) == len(DEVICE_KINDS)


@pytest.mark.slow
def test_another_kind_needs_one_entry_to_be_seen_asked_for_read_and_drawn():
    command = [sys.executable, "-c", WITH_ANOTHER]
    said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert said.stdout.splitlines() == [
        f"npu:0 npu:1 npu Made-up card {2**33} False",
        "npu:0+graph10 #123456",
        "True",
    ], said.stderr
