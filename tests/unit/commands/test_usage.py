"""What is typed wrong is a usage error in one sentence, before anything starts."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--hidden-size", "0"), "Hidden size: 0 is not possible, it must be a whole number between 1 and"),
        (("--batch-size", "9999999"), "Batch size: 9,999,999"),
        (("--learning-rate", "nan"), "Learning rate: nan"),
        (("--devices", "gpu"), "Devices: 'gpu'"),
        (("--devices", "cpu,cpu"), "different devices"),
        (("--budget", "0"), "Time budget: 0"),
        (("--preset", "disc", "--model", "cnn"), "Preset: 'disc'"),
    ],
)
def test_a_value_out_of_range_is_a_usage_error_in_one_sentence(command, arguments, sentence):
    done = command("run", "--devices", "cpu", *arguments)
    assert done.status == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.parametrize("arguments", [(), ("run", "--dataset", "cifar"), ("run", "--speed", "11"), ("store",)])
def test_words_it_does_not_know_are_a_usage_error(command, arguments):
    with pytest.raises(SystemExit) as left:
        command(*arguments)
    assert left.value.code == 2
