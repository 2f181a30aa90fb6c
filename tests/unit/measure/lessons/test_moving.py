import pytest
import torch

from core.measure import demonstrations
from core.measure.demonstrations.clock import Stage, Stopped
from core.measure.trial import Hooks
from core.question.demonstrations import Demonstration
from core.results.exhibits import Snippet


@pytest.fixture(scope="module")
def snippets() -> dict[str, Snippet]:
    asked = Demonstration(kind="moving")
    return {
        snippet.title: snippet
        for snippet in demonstrations.run_moving_lesson(asked, Stage(demonstration=asked)).snippets
    }


def test_a_machine_without_an_accelerator_shows_it_with_meta_and_says_so():
    asked = Demonstration(kind="moving")
    shown = demonstrations.run_moving_lesson(asked, Stage(demonstration=asked))
    assert {snippet.device for snippet in shown.snippets} >= {"meta"}
    assert shown.notes == (demonstrations.META_NOTE,)


def test_a_tensor_moves_to_a_new_one_and_a_module_in_place(snippets):
    assert snippets["Does .to() move a tensor?"].output == "here: cpu\nthere: meta"
    assert snippets["Does .to() move a module?"].output == "the same object: True\nits weight lives on: meta"
    assert snippets["Its parameters have"].output == "{'meta'}"


def test_a_module_has_no_device(snippets):
    assert snippets["Does a module have a device?"].error.startswith("AttributeError: 'Linear' object has no attribute")


def live(one: str, other: str) -> str:
    """What PyTorch says now to a sum of tensors on two devices."""
    with pytest.raises(RuntimeError) as raised:
        torch.ones(3, device=one) + torch.ones(3, device=other)
    return f"RuntimeError: {raised.value}"


def test_the_messages_are_those_that_pytorch_raises_here_and_change_with_the_order(snippets):
    one, other = snippets["A tensor here plus a tensor there"], snippets["A tensor there plus a tensor here"]
    assert one.error == live("cpu", "meta")
    assert other.error == live("meta", "cpu")
    assert one.error != other.error
    assert one.output == other.output == ""


def test_sample_and_network_must_be_in_one_place(snippets):
    there, here = snippets["A network there, a sample here"].error, snippets["A network here, a sample there"].error
    assert there.startswith("RuntimeError")
    assert here.startswith("RuntimeError")
    assert there != here
    assert snippets["Both in one place"].output == "meta"


def test_a_number_in_a_devices_name_is_an_index(snippets):
    assert snippets["What is the 0 in cuda:0?"].output == "cuda 0\ncuda None"


def test_code_that_asks_for_the_device_runs_anywhere(snippets):
    agnostic = snippets["Code that runs on any machine"]
    assert (agnostic.output, agnostic.error) == ("True", "")
    loss = snippets["A loss as a number, wherever it lives"]
    assert loss.output == "with .item(): float"
    assert loss.error.startswith(("RuntimeError", "TypeError"))


def test_what_is_shown_is_what_was_run(snippets):
    for snippet in snippets.values():
        assert "DEVICE" not in snippet.code
        compile(snippet.code, snippet.title, "exec")
        assert snippet.output or snippet.error
        assert all(len(line) <= 120 for line in snippet.code.splitlines())


def test_an_error_that_no_lesson_is_about_is_a_bug(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        demonstrations._run_snippet("broken", "1 / 0", "meta")


def test_it_can_be_stopped():
    asked = Demonstration(kind="moving")
    with pytest.raises(Stopped):
        demonstrations.run_moving_lesson(asked, Stage(demonstration=asked, hooks=Hooks(should_stop=lambda: True)))
