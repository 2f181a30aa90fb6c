"""Writes small image sets in MNIST's own IDX format, so that torchvision's real loaders can read them."""

import struct
from pathlib import Path

import numpy as np

IMAGES_MAGIC, LABELS_MAGIC = 2051, 2049


def write(folder: Path, *, train: int = 400, test: int = 100, loader: str = "MNIST", seed: int = 0) -> Path:
    """Write the four files of one data set below `folder`, as torchvision lays them out; returns `folder`.

    The images are noise around a bright bar whose place depends on the class, so that a model can learn them.
    """
    raw = folder / loader / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        images = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label + 3 : 2 * label + 6, 4:24] += 180
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", IMAGES_MAGIC, count, 28, 28) + images.tobytes()
        )
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">II", LABELS_MAGIC, count) + labels.tobytes())
    return folder
