"""A contributed file: what it holds, what of it is refused by which sentence, and when a row counts as confirmed."""

import dataclasses
import hashlib
import io
import json
import zipfile

import pytest

from core.answer import contribution
from core.answer.contribution import CHECKS, FACTS, ROWS
from core.errors import ForeignFile, StoreError
from core.results import exchange
from core.results.parquet import to_table
from core.results.store import Store
from tests.rows import run, trial

DEVICES = {"cpu": "Test CPU", "cuda:0": "NVIDIA Test GPU"}
FACTS_OF_RUN = {"devices": DEVICES}
CHECKS_OF_RUN = {"devices": {name: {"drain_share": 1e-4} for name in DEVICES}}


def pack(rows, facts=FACTS_OF_RUN, checks=CHECKS_OF_RUN):
    return contribution.pack_contribution(rows, facts, checks)


def unzip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def zipped(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, part in parts.items():
            packed.writestr(name, part)
    return buffer.getvalue()


def changed(place=1, **columns):
    """The rows of a run of which one, the GPU's unless said, has other columns."""
    rows = run()
    rows[place] = dataclasses.replace(rows[place], **columns)
    return rows


def with_block(factor, place=1):
    """The rows of a run of which one block is so many times faster."""
    row = run()[place]
    ends = list(row.block_end_ns)
    ends[3] = row.block_begin_ns[3] + max(1, round((ends[3] - row.block_begin_ns[3]) / factor))
    return changed(place, block_end_ns=tuple(ends))


def overlapping():
    """The rows of a run whose GPU was timed while the CPU was."""
    return changed(block_begin_ns=run()[0].block_begin_ns, block_end_ns=run()[0].block_end_ns)


def repacked(rows, **parts):
    """A packed file with some parts changed afterwards, whose hashes are those of before."""
    return zipped({**unzip(pack(rows)), **parts})


def bomb():
    return zipped({**unzip(pack(run())), FACTS: b" " * (2**16 + 1)})


REFUSED = {
    "no zip file": (lambda: b"PK\3\4 torn", "not a readable zip file"),
    "half of it": (lambda: pack(run())[:2_000], "not a readable zip file"),
    "a part too many": (lambda: repacked(run(), **{"run.py": b"print()"}), "and nothing else"),
    "a part that unpacks to too much": (bomb, r"facts\.json exceeds the limit of"),
    "rows that were changed": (
        lambda: repacked(run(), **{ROWS: exchange.export(to_table(run()[:1]), "parquet")}),
        r"rows\.parquet was changed after it was packed",
    ),
    "facts that were changed": (lambda: repacked(run(), **{FACTS: b"{}"}), r"facts\.json was changed"),
    "checks without a form": (lambda: repacked(run(), **{CHECKS: b"[1]"}), r"checks\.json is not a JSON object"),
    "a newer form": (lambda: repacked(run(), **{CHECKS: b'{"format": 9}'}), "has format 9"),
    "no rows": (lambda: pack([]), "it has no rows"),
    "another protocol": (lambda: pack(changed(protocol_version=1)), "measured by protocol 1; protocol"),
    "changed code": (lambda: pack(changed(app_commit="0123456789ab+")), "changed or unknown code"),
    "unknown code": (lambda: pack(changed(app_commit="")), "a commit without changes is needed"),
    "a device that was not drained": (lambda: pack(changed(drained=False)), "without synchronizing the device"),
    "two machines": (lambda: pack(changed(machine_id="a" * 12)), "rows of several machines"),
    "another card in the facts": (
        lambda: pack(run(), {"devices": {"cpu": "Test CPU"}}),
        "does not name the device cuda:0",
    ),
    "no drain check": (lambda: pack(run(), checks={}), "lacks the synchronization check of cpu"),
    "slow drains": (
        lambda: pack(run(), checks={"devices": {name: {"drain_share": 0.2} for name in DEVICES}}),
        "synchronizing cpu takes 20 % of a block",
    ),
    "other losses": (
        lambda: pack(changed(loss=tuple(0.9 * loss for loss in run()[1].loss))),
        "must train the same model on the same batches",
    ),
    "another training beside it": (
        lambda: pack(changed(hidden_size=256)),
        "is a different training from the other rows",
    ),
    "no losses": (lambda: pack(changed(loss=(), loss_step=())), "has no loss to compare"),
    "one block a million times too fast": (
        lambda: pack(with_block(1_000_000)),
        "block 4 of .* computes .* above the peak",
    ),
    "one block of the CPU a million times too fast": (lambda: pack(with_block(1_000_000, 0)), "above the peak"),
    "one block twenty times too fast": (lambda: pack(with_block(20)), "20x faster than the median of its row"),
    "a busy time beyond the step": (lambda: pack(changed(busy_step_s=(1e-3,) * 5)), "is busy for 1.00 ms of a step"),
    "blocks at the same time": (lambda: pack(overlapping()), "overlap, but devices must be timed in turns"),
    "too few blocks": (lambda: pack(run(pairs=5)), "has 5 timed blocks; at least 6 are needed"),
    "one device": (lambda: pack(run()[:1]), "has one device; two are needed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_or_implausible_file_is_refused_with_its_sentence(name):
    make, sentence = REFUSED[name]
    with pytest.raises(ForeignFile, match=sentence):
        contribution.check_contribution(make())


def test_every_refusal_has_a_sentence_of_its_own():
    assert len({sentence for _, sentence in REFUSED.values()}) >= 20


def test_weights_that_move_faster_than_any_memory_are_refused():
    rows = [dataclasses.replace(row, parameters=2**50 // 8, flops_per_step=1) for row in run()]
    with pytest.raises(ForeignFile, match=r"moves .* B/s, above the peak"):
        contribution.check_contribution(pack(rows))


def test_a_step_that_a_listed_card_cannot_do_is_refused_though_the_fastest_card_could():
    rows = [dataclasses.replace(row, flops_per_step=10**10) for row in run()]  # 40 TFLOP/s
    slow = [dataclasses.replace(row, device_name="Tesla T4" if row.device != "cpu" else "Test CPU") for row in rows[1:]]
    with pytest.raises(ForeignFile, match="above the peak"):
        contribution.check_contribution(
            pack(
                [dataclasses.replace(rows[0], flops_per_step=1), *slow], {"devices": {**DEVICES, "cuda:0": "Tesla T4"}}
            )
        )


def test_a_plausible_file_gives_its_rows_and_the_same_mark_whatever_it_is_called(tmp_path):
    data = pack(run())
    (tmp_path / "a.zip").write_bytes(data)
    table, mark = contribution.check_contribution(tmp_path / "a.zip")
    assert table.num_rows == 2
    assert mark.startswith(exchange.CONTRIBUTED)
    assert contribution.check_contribution(data)[1] == mark
    assert contribution.check_contribution(pack(run(run_id="ba9876543210")))[1] != mark


def test_a_file_that_is_not_there_is_an_error_of_the_store(tmp_path):
    with pytest.raises(StoreError, match="cannot be read"):
        contribution.check_contribution(tmp_path / "nothing.zip")


def test_what_is_packed_holds_no_message_and_is_described_whole():
    data = pack(changed(message="failed in /home/ada/secret.py"))
    text = contribution.describe_contribution(data)
    assert "ada" not in text
    assert b"ada" not in unzip(data)[ROWS]
    assert all(name in text for name in (ROWS, FACTS, CHECKS, "NVIDIA Test GPU", "drain_share", "block_end_ns"))


def test_the_hashes_are_those_of_the_parts():
    parts = unzip(pack(run()))
    hashes = json.loads(parts[CHECKS])["sha256"]
    assert hashes == {name: hashlib.sha256(parts[name]).hexdigest() for name in (ROWS, FACTS)}


def test_no_other_file_gets_the_mark_by_its_name(tmp_path):
    store = Store(tmp_path / "store")
    exchange.import_file(exchange.export(to_table(run()), "parquet"), "contributed-0123456789ab.zip", store)
    assert {row.origin for row in store.trials()} == {"0123456789ab.zip"}


def test_eight_trainings_contend_on_both_devices_and_two_of_them_as_a_graph():
    planned = dict(contribution.plan_experiments("cuda:0", 8, has_graphs=True))
    assert len(planned) == 8
    assert sum(len(each.contenders) for each in planned.values()) == 18
    assert {each.pairs for each in planned.values()} == {contribution.PAIRS}
    alone = dict(contribution.plan_experiments("cpu", 8, has_graphs=False))
    assert {str(contender) for each in alone.values() for contender in each.contenders} == {"cpu@1", "cpu@8"}


def line(machine_id, step_s, **changes):
    row = trial(contender="cuda:0", machine_id=machine_id, **changes)
    facts = {name: getattr(row, name) for name in (*contribution.CONFIRMED_BY, "trial_id", "machine_id")}
    return {**facts, "step_s": step_s, "noise": 0.01, "pairs": 20}


def test_a_second_machine_with_the_same_card_confirms_what_it_agrees_with():
    first, second = line("a" * 12, 1e-3), line("b" * 12, 1.02e-3, run_id="ba9876543210")
    assert contribution.find_confirmed([first]) == set()
    assert contribution.find_confirmed([first, second]) == {first["trial_id"], second["trial_id"]}


@pytest.mark.parametrize(
    "other",
    [
        lambda: line("a" * 12, 1e-3, run_id="ba9876543210"),
        lambda: line("b" * 12, 2e-3, run_id="ba9876543210"),
        lambda: line("b" * 12, 1e-3, run_id="ba9876543210", device_name="another card"),
        lambda: line("b" * 12, 1e-3, run_id="ba9876543210", hidden_size=256),
    ],
    ids=["the same machine", "another time", "another card", "another training"],
)
def test_nothing_else_confirms_it(other):
    assert contribution.find_confirmed([line("a" * 12, 1e-3), other()]) == set()
