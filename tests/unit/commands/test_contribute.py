"""`contribute` shows what it would write and asks; what it wrote is imported once, and a damaged file never."""

import io
import sys
from types import SimpleNamespace

import pytest

from core.answer import contribution
from core.commands import contribute
from core.commands import run as measuring
from core.errors import CrossoverError, InvalidValue
from core.files.project import Origin
from core.results.store import Store
from tests.rows import run

INFO = [
    SimpleNamespace(device="cpu", name="Test CPU", driver="", kind="cpu"),
    SimpleNamespace(device="cuda:0", name="NVIDIA Test GPU", driver="driver 580.10, CUDA 13.0", kind="cuda"),
]
ABOUT = SimpleNamespace(
    app_commit="0123456789ab",
    cpu_name="Test CPU",
    cores=8,
    cores_usable=4,
    memory_bytes=2**34,
    system="Linux x86_64",
    python_version="3.11.9",
    torch_version="2.14.1",
)
MACHINE = SimpleNamespace(
    devices=INFO, device_names={info.device: info.name for info in INFO}, environment=ABOUT, refusals={}
)


@pytest.fixture
def measured(monkeypatch):
    """A machine whose measurement takes no time."""
    monkeypatch.setattr(measuring, "require_machine", lambda queue: MACHINE)
    monkeypatch.setattr(contribute, "_measure", lambda *_: run())
    monkeypatch.setattr(contribute, "run_script", lambda *_: {"cpu": 1.01})
    figures = {"drain_share": 1e-5, "flops": 1e12, "bytes_per_s": 1e11}
    monkeypatch.setattr(contribute, "check_device", lambda device: figures)


def answer(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.usefixtures("measured")
def test_nothing_is_written_unless_the_question_is_answered_with_yes(command, tmp_path, monkeypatch):
    for text in ("n\n", "", "\n"):
        answer(monkeypatch, text)
        done = command("contribute", "--output", tmp_path)
        assert done.status == 1
        assert "rows.parquet" in done.out
        assert "Nothing was written." in done.err
    assert list(tmp_path.glob("*.zip")) == []


@pytest.mark.usefixtures("measured")
def test_a_written_file_is_imported_once_and_its_rows_are_marked(command, tmp_path, monkeypatch):
    answer(monkeypatch, "y\n")
    done = command("contribute", "--output", tmp_path)
    assert done.status == 0
    (file,) = tmp_path.glob("*.zip")
    assert file.name.startswith("crossover-nvidia-test-gpu-")
    assert "NVIDIA Test GPU" in done.out
    store = tmp_path / "store"
    words = ("store", "import", "--contributed", file, "--store", store)
    assert command(*words).out == "2 rows added, 0 already stored\n"
    renamed = file.rename(tmp_path / "another name.zip")
    again = command("store", "import", "--contributed", renamed, "--store", store)
    assert again.out == "0 rows added, 2 already stored\n"
    (origin,) = {row.origin for row in Store(store).trials()}
    assert origin.startswith("contributed-")


@pytest.mark.usefixtures("measured")
def test_a_damaged_file_is_refused_by_name_and_nothing_of_it_is_added(command, tmp_path):
    assert command("contribute", "--yes", "--output", tmp_path).status == 0
    (file,) = tmp_path.glob("*.zip")
    file.write_bytes(file.read_bytes()[:1_000])
    done = command("store", "import", "--contributed", file, "--store", tmp_path / "store")
    assert done.status == 1
    assert done.err.startswith(f"{file.name}: it is not a readable zip file")
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("measured")
def test_a_device_or_a_folder_that_is_not_there_is_named(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "cuda:9" in command("contribute", "--device", "cuda:9").err
    assert "nowhere" in command("contribute", "--output", "nowhere").err


def test_facts_hold_no_name_and_no_path():
    facts = contribute.describe_machine(MACHINE, ["cpu", "cuda:0"])
    assert facts["devices"] == {"cpu": "Test CPU", "cuda:0": "NVIDIA Test GPU"}
    assert set(facts) == {
        *("commit", "cpu", "threads", "threads_usable", "memory_bytes", "system", "python", "torch"),
        *("devices", "drivers"),
    }


def test_the_form_is_named_by_the_address_the_code_came_from(monkeypatch):
    monkeypatch.setattr(contribution, "find_origin", lambda: Origin(address="https://example.org/a/crossover.git"))
    assert "https://example.org/a/crossover/issues/new?template=contribution.yml" in contribute.say_where_to_send()
    monkeypatch.setattr(contribution, "find_origin", lambda: Origin(address="git@example.org:a/crossover"))
    assert "https" not in contribute.say_where_to_send()


def test_a_self_check_that_fails_says_of_which_device(monkeypatch):
    monkeypatch.setattr(contribute, "SELF_CHECK_S", 60)
    with pytest.raises(CrossoverError, match="self-check of nonsense failed"):
        contribute.check_device("nonsense")


def test_a_device_of_this_machine_is_checked():
    figures = contribute.check_device("cpu")
    assert figures["flops"] > 0
    assert figures["bytes_per_s"] > 0
    assert 0 <= figures["drain_share"] < 0.05


def test_a_script_that_fails_is_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(contribute, "training_script", lambda trials: "raise SystemExit(1)")
    assert contribute.run_script(run(), tmp_path) == {}
    assert "left out" in capsys.readouterr().err


def test_what_a_script_prints_is_read_by_contender(monkeypatch, tmp_path):
    printed = "print('device stored here')\nprint('cpu                 2.0   3.0   1 1')\nprint('cuda:0 1.0 1.0 2 2')"
    monkeypatch.setattr(contribute, "training_script", lambda trials: printed)
    assert contribute.run_script(run(), tmp_path) == {"cpu": 1.5, "cuda:0": 1.0}


def test_only_devices_of_the_machine_are_chosen():
    assert contribute._choose_device(None, MACHINE) == "cuda:0"
    assert contribute._choose_device("cpu", MACHINE) == "cpu"
    with pytest.raises(InvalidValue):
        contribute._choose_device("mps", MACHINE)
