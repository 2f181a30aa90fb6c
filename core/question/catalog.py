"""Facts about each data set: shape, classes, sizes and source.

The pages, the command line and the measuring half all read them, so nothing here imports torch or touches a file.
`core.measure.datasets` loads the data and checks it against these facts.
"""

from dataclasses import dataclass

from ..errors import require_choice


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Facts about one data set.

    Attributes:
        name: key in links, on the command line and in the store.
        title: label for people.
        summary: one sentence; a synthetic set says that it is synthetic.
        shape: shape of one sample, (features,) or (channels, height, width); () for tokens, whose number is a size.
        classes: class names in the order of their labels 0, 1, …
        default_samples: training samples by default.
        max_samples: limit of training samples.
        needs_files: whether torchvision's files must be on disk or be downloaded.
        bundled: its file in scikit-learn; empty if it is not part of scikit-learn.
        vocabulary: number of different tokens or categories, if a sample is a sequence of them.
        axes: adjustable sizes of its samples.
    """

    name: str
    title: str
    summary: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    default_samples: int
    max_samples: int
    needs_files: bool = False
    bundled: str = ""
    vocabulary: int = 0
    axes: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        """Whether the samples come from a seeded generator."""
        return not (self.needs_files or self.bundled)

    @property
    def called(self) -> str:
        """The title of the data set without the part in parentheses, for a sentence."""
        return self.title.partition(" (")[0]

    def shape_for_length(self, sequence_length: int) -> tuple[int, ...]:
        """Return the shape of one sample, whose length may be a setting."""
        return (sequence_length,) if "sequence_length" in self.axes else self.shape

    def vocabulary_for_rows(self, embedding_rows: int) -> int:
        """Return the number of different tokens, which may be a setting."""
        return embedding_rows if "embedding_rows" in self.axes else self.vocabulary


_DIGITS = tuple(str(digit) for digit in range(10))
_FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

DATASETS: dict[str, Dataset] = {
    entry.name: entry
    for entry in (
        Dataset(
            name="disc",
            title="Disc (synthetic)",
            summary="Synthetic: random points of the unit square, inside or outside a quarter disc (1/8 of its area).",
            shape=(2,),
            classes=("outside", "inside"),
            default_samples=1_000,
            max_samples=1_000_000,
        ),
        Dataset(
            name="signal",
            title="Signal and background (synthetic)",
            summary="Synthetic: 20 features of simulated collision events, a signal over a broad background.",
            shape=(20,),
            classes=("background", "signal"),
            default_samples=20_000,
            max_samples=1_000_000,
        ),
        Dataset(
            name="token-order",
            title="Order of tokens (synthetic)",
            summary="Synthetic: sequences over a 32-token vocabulary. Tokens a, b and c each appear once; the label is "
            "their order, so counting tokens isn't enough.",
            shape=(),
            classes=("abc", "acb", "bac", "bca", "cab", "cba"),
            default_samples=4_000,
            max_samples=1_000_000,
            vocabulary=32,
            axes=("sequence_length",),
        ),
        Dataset(
            name="clicks",
            title="Clicks (synthetic)",
            summary="Synthetic: 8 categorical columns of a shop's visitors, with few frequent and many rare categories."
            " Every model begins with an embedding: a trained table with a row for each hash of a category."
            " Its gradient is dense, as in PyTorch: each step updates every row.",
            shape=(8,),
            classes=("leaves", "buys"),
            default_samples=20_000,
            max_samples=1_000_000,
            vocabulary=10_000,
            axes=("embedding_rows",),
        ),
        Dataset(
            name="digits",
            title="Digits (1,797 images)",
            summary="Real: 1,797 handwritten digits of 8×8 pixels, bundled with scikit-learn, no download.",
            shape=(1, 8, 8),
            classes=_DIGITS,
            default_samples=1_257,
            max_samples=1_257,
            bundled="digits.csv.gz",
        ),
        Dataset(
            name="breast-cancer",
            title="Breast cancer (569 tumours)",
            summary="Real: 30 measures of cell nuclei of 569 tumours, benign or malignant, bundled with scikit-learn.",
            shape=(30,),
            classes=("malignant", "benign"),
            default_samples=398,
            max_samples=398,
            bundled="breast_cancer.csv",
        ),
        Dataset(
            name="wine",
            title="Wine (178 wines)",
            summary="Real: 13 chemical measures of 178 wines from three growers, bundled with scikit-learn.",
            shape=(13,),
            classes=("grower 1", "grower 2", "grower 3"),
            default_samples=124,
            max_samples=124,
            bundled="wine_data.csv",
        ),
        Dataset(
            name="diabetes",
            title="Diabetes (442 patients)",
            summary="Real: 10 measures of 442 patients, bundled with scikit-learn. Target: disease progression after"
            " one year (25 to 346), split into three classes (up to 100, up to 184, above).",
            shape=(10,),
            classes=("low third", "middle third", "high third"),
            default_samples=308,
            max_samples=308,
            bundled="diabetes_data_raw.csv.gz",
        ),
        Dataset(
            name="mnist",
            title="MNIST (70,000 images)",
            summary="Real: 70,000 handwritten digits of 28×28 pixels, loaded by torchvision.",
            shape=(1, 28, 28),
            classes=_DIGITS,
            default_samples=50_000,
            max_samples=60_000,
            needs_files=True,
        ),
        Dataset(
            name="fashion-mnist",
            title="Fashion-MNIST (70,000 images)",
            summary="Real: 70,000 images of clothing of 28×28 pixels, loaded by torchvision.",
            shape=(1, 28, 28),
            classes=_FASHION,
            default_samples=50_000,
            max_samples=60_000,
            needs_files=True,
        ),
    )
}


def dataset(name: str) -> Dataset:
    """Return facts of the data set called `name`.

    Raises:
        InvalidValue: no data set has that name.
    """
    return DATASETS[require_choice("dataset", name, DATASETS)]
