"""What can be known without measuring is refused at once with status 2, also while somebody else measures."""

import pytest

from core.commands import arguments
from core.jobs import process
from core.jobs.machine import LOCK_VARIABLE, Machine, measurement_lock
from core.jobs.process import ExecutionContext
from core.jobs.queue import Queue
from core.results import environment
from core.results.environment import DeviceInfo
from tests import own_trainings

CPU = DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=16 * 2**30)

SCRIPTS = {
    "no_function.py": ("def train(size, device):\n    pass\n", "a function of no_function.py, which has train"),
    "no_python.py": ("def build(size, device)\n    pass\n", "valid Python; line 1 is not"),
    "one_argument.py": ("def build(size):\n    pass\n", "a function that takes two arguments, size and device"),
    "only_by_name.py": ("def build(size, device, *, seed):\n    pass\n", "a function that takes two arguments"),
}
ACCEPTED = {
    "nested": "if True:\n    def build(size, device): pass\n",
    "imported": "from elsewhere import train as build\n",
    "starred": "from elsewhere import *\n",
    "assigned": "build = lambda size, device: None\n",
    "made": "globals().update(build=print)\n",
    "open": "def build(*settings, **others): pass\n",
    "usual": own_trainings.PLAIN,
}


@pytest.fixture
def measured_elsewhere(tmp_path, monkeypatch):
    """Another measurement holds the machine."""
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    with measurement_lock():
        yield


@pytest.mark.usefixtures("measured_elsewhere")
class TestWhileAnotherMeasurementHoldsTheMachine:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_a_script_that_cannot_be_built_is_refused(self, command, tmp_path, name):
        text, sentence = SCRIPTS[name]
        (tmp_path / name).write_text(text)
        done = command("run", "--training", tmp_path / name, "--size", 8, "--devices", "cpu@1")
        assert (done.status, done.out) == (2, "")
        assert sentence in done.err

    def test_a_device_without_any_driver_is_refused(self, command, monkeypatch):
        monkeypatch.setattr(environment, "has_accelerator_driver", lambda: False)
        done = command("run", "--devices", "cpu,cuda:0", "--dataset", "disc", "--model", "linear")
        assert done.status == 2
        assert "cuda:0 is not on this machine, which has cpu" in done.err

    def test_a_device_that_the_serving_process_does_not_see_is_refused(self, command, monkeypatch):
        monkeypatch.setattr(environment, "has_accelerator_driver", lambda: True)
        queue, here = Queue(), ExecutionContext.capture(whole=True)
        queue.folder.mkdir()
        facts = Machine(environment=environment.read_environment(), devices=(CPU,), surroundings=here, hint="Buy one.")
        queue.worker_file.report(facts, process.current_process())
        done = command("run", "--devices", "cpu,cuda:0", "--dataset", "disc", "--model", "linear", "--fresh")
        assert done.status == 2
        assert "cuda:0 is not on this machine, which has cpu. Buy one." in done.err

    def test_more_threads_than_there_are_are_refused(self, command):
        done = command("run", "--devices", "cpu@1,cpu@1024", "--dataset", "disc", "--model", "linear", "--fresh")
        assert done.status == 2
        assert "threads of this machine" in done.err

    @pytest.mark.parametrize("words", [("run",), ("sweep", "--axis", "depth", "--values", "1,2")])
    def test_a_wait_for_quiet_of_more_than_an_hour_is_refused(self, command, words):
        done = command(*words, "--devices", "cpu@1,cpu", "--dataset", "disc", "--fresh", "--wait-for-quiet", 3_601)
        assert (done.status, done.out) == (2, "")
        assert "wait-for-quiet must be 0 to 3,600 seconds (got 3,601)" in done.err


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_function_that_only_running_the_file_would_show_is_not_refused(tmp_path, name):
    (tmp_path / "script.py").write_text(ACCEPTED[name])
    arguments.check_function(tmp_path / "script.py", "build")
