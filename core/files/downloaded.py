"""Files of data sets that torchvision downloads: where they belong, and whether they are there; none is read here."""

import os
from pathlib import Path

from .project import PROJECT

DATASETS_VARIABLE = "CROSSOVER_DATASETS"
"""Environment variable that names another folder of downloaded data sets."""

LOADERS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
"""By data set, what torchvision calls its loader and the folder of its files."""

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
"""What each of these data sets consists of."""


def folder() -> Path:
    """Where torchvision keeps its files."""
    return Path(os.environ.get(DATASETS_VARIABLE) or PROJECT / "data" / "datasets")


def locate_dataset(dataset: str, within: Path | None = None) -> Path:
    """The folder of one data set's files, in that of all unless another is given."""
    return (within or folder()) / LOADERS[dataset] / "raw"


def complete(dataset: str) -> bool:
    """Whether all files of a data set are where they belong; their sums are checked by who reads them."""
    return all((locate_dataset(dataset) / name).is_file() for name in FILES)
