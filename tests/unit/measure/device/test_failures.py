"""What a failure ends: a contender, or one thing that is known of it; and that it holds on to no memory."""

import weakref

import pytest
import torch

from core.errors import CustomTrainingFailed, InvalidValue, LaneUnavailable, OutOfMemory, TooSlow
from core.measure import devices
from core.question.experiment import Contender

GRAPH = Contender.parse("cuda:0+graph10")


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (MemoryError(), True),
        (OutOfMemory("The training needs about 9 GiB."), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("HIP out of memory. Tried to allocate 20.00 MiB."), True),
        (RuntimeError("HIP error: hipErrorOutOfMemory"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:81] DefaultCPUAllocator: not enough memory: you tried"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB)"), True),
        (RuntimeError("Invalid buffer size: 24.00 GiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), True),
        (RuntimeError("CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`"), True),
        (RuntimeError("rocblas_status_memory_error"), True),
        (RuntimeError("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"), True),
        (RuntimeError("Native API failed. Native API returns: 38 (UR_RESULT_ERROR_OUT_OF_HOST_MEMORY)"), True),
        (RuntimeError("XPU out of memory. Tried to allocate 1.00 GiB."), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_an_allocators_refusal_is_told_from_other_errors(error, missing):
    assert devices.is_out_of_memory(error) is missing


def test_nothing_holds_what_a_failure_had_allocated_once_its_words_are_there():
    held = []

    def work():
        samples = torch.zeros(100)
        held.append(weakref.ref(samples))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    assert devices.attempt(work, lambda error: str(error) if held[0]() is not None else None) == "CUDA out of memory."
    assert held[0]() is None


def test_work_that_is_done_has_no_failure_and_one_that_nobody_knows_is_raised():
    done = []
    assert devices.attempt(lambda: done.append(True), str) is None
    assert done == [True]
    for nothing in (None, False, ""):
        with pytest.raises(ZeroDivisionError):
            devices.attempt(lambda: 1 / 0, lambda _, nothing=nothing: nothing)


@pytest.mark.parametrize(
    ("contender", "error", "expected"),
    [
        ("cpu@1", MemoryError(), ("out_of_memory", "The device ran out of memory.")),
        ("cuda:0", OutOfMemory("The training needs 1 TiB."), ("out_of_memory", "The training needs 1 TiB.")),
        ("cuda:0+graph10", torch.OutOfMemoryError("CUDA"), ("out_of_memory", "The device ran out of memory.")),
        ("cuda:0+graph10", LaneUnavailable("It has none."), ("interrupted", "It has none.")),
        (
            "cpu+bf16",
            CustomTrainingFailed("a.py", "step\nKeyError: 1"),
            ("interrupted", "cpu+bf16 failed: KeyError: 1."),
        ),
        ("cpu", CustomTrainingFailed("a.py", "step\nKeyError: 1"), None),
        ("cuda:0", RuntimeError("CUDA error: unspecified launch failure"), None),
        ("cpu@1+compiled", TooSlow("it is", "Less is needed."), None),
        ("cpu@1+compiled", InvalidValue("threads", 9, "at most 2"), None),
    ],
)
def test_an_error_ends_a_contender_or_the_run(contender, error, expected):
    assert devices.ending(Contender.parse(contender), error) == expected


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "operation not permitted when stream is capturing\nCompile with",
            "RuntimeError: operation",
        ),
        ("\n\nFailed to find C compiler.\n", "RuntimeError: Failed to find C compiler."),
        ("", "cuda:0+graph10 failed: RuntimeError."),
        ("Found GPU0 which is too old:\x1b[31m capability 6.1", "capability 6.1."),
        ("x" * 5_000, "xxx…"),
    ],
)
def test_a_lane_that_fails_says_why_in_a_sentence(said, words):
    outcome, sentence = devices.ending(GRAPH, RuntimeError(said))
    assert outcome == "interrupted"
    assert words in sentence
    assert sentence.startswith("cuda:0+graph10 failed: RuntimeError")
    assert sentence.isprintable()
    assert len(sentence) < 400


def test_of_an_error_that_announces_another_the_other_is_quoted():
    class BackendFailed(RuntimeError):
        inner_exception = FileNotFoundError("Python.h")

    _, sentence = devices.ending(GRAPH, BackendFailed("backend='inductor' raised:\nFileNotFoundError: Python.h"))
    assert sentence == "cuda:0+graph10 failed: FileNotFoundError: Python.h."
