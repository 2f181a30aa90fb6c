"""Prediction whether a GPU that is not available would be faster: a range from published timings.

A prediction is never a row, a statistic or a crossover. `predict` predicts one training, and `sample_curve` the values
of a size. GPUs, their constants and the prediction error on published trainings are in `cards`.
"""

from .cards import Accuracy, Card, Comparison, Miss, card_of_device, find_card, list_cards, load_accuracy
from .curve import sample_curve, sample_figures
from .prediction import (
    ANSWERS,
    CONFIDENCE,
    NOT_COVERED,
    PARTS,
    CpuSide,
    CpuStep,
    Prediction,
    Range,
    compare_run,
    compare_runs,
    predict,
    read_cpu,
)

__all__ = [
    "ANSWERS",
    "CONFIDENCE",
    "NOT_COVERED",
    "PARTS",
    "Accuracy",
    "Card",
    "Comparison",
    "CpuSide",
    "CpuStep",
    "Miss",
    "Prediction",
    "Range",
    "card_of_device",
    "compare_run",
    "compare_runs",
    "find_card",
    "list_cards",
    "load_accuracy",
    "predict",
    "read_cpu",
    "sample_curve",
    "sample_figures",
]
