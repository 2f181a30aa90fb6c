"""Real data sets that come with scikit-learn, read from its own files.

Importing scikit-learn would bring a second OpenMP runtime into the measuring process, so nothing of it is imported.
"""

import importlib.metadata
from pathlib import Path

import numpy as np

from core.errors import DatasetUnavailable
from core.question import catalog

LabelledTable = tuple[np.ndarray, np.ndarray]
"""Rows float32 (n, features) and labels int64 (n,)."""

DIABETES_CUTS = (100.0, 184.0)
"""Highest progression of the first and of the second third of the patients, who have 25 to 346."""


def read_bundled_dataset(facts: catalog.Dataset) -> LabelledTable:
    """Every sample of a data set, rows (n, *shape), in the order of its file.

    Raises:
        DatasetUnavailable: scikit-learn is not installed.
    """
    try:
        package = importlib.metadata.distribution("scikit-learn")
    except importlib.metadata.PackageNotFoundError as error:
        message = (
            f"The data set {facts.called} comes with scikit-learn, which is not installed: pip install scikit-learn."
        )
        raise DatasetUnavailable(message) from error
    folder = Path(str(package.locate_file("sklearn/datasets/data")))
    rows, labels = (_diabetes if facts.name == "diabetes" else _read_labelled_table)(folder, facts.bundled)
    return rows.reshape(-1, *facts.shape), labels


def _read_labelled_table(folder: Path, name: str) -> LabelledTable:
    """A table whose last column is the label; that of the digits alone has no line of headings."""
    headings = 0 if name.startswith("digits") else 1
    table = np.loadtxt(folder / name, delimiter=",", dtype=np.float32, skiprows=headings)
    return table[:, :-1], table[:, -1].astype(np.int64)


def _diabetes(folder: Path, name: str) -> LabelledTable:
    """Patients by the third that their progression lies in."""
    progression = np.loadtxt(folder / "diabetes_target.csv.gz")
    return np.loadtxt(folder / name, dtype=np.float32), np.searchsorted(DIABETES_CUTS, progression).astype(np.int64)
