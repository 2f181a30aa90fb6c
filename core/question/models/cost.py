"""What a training needs, as far as its settings tell before anything of it is measured.

Of networks it follows from their layers. Of a fit of gradient boosting nobody knows it: what is said of one here serves
to order sizes, to bound what a host allows and to keep memory from running out, and is never shown as a fact of it.
"""

from ..experiment import Point

FIT_OPERATIONS = 20
"""Operations that stand for one number of a table in one round for one class, so that a fit of 20,000 rows counts as
what a network counts that takes as long; good for an order of magnitude."""

FIT_BYTES = 16 * 2**20
"""Bytes that any fit takes: threads, buffers, a library's first use. XGBoost took 12 MiB for 3,000 rows, the others
less than 8 (`tests.benchmarks.boosting --memory`, by which the figures below are bounds as well)."""

FIT_TABLES, FIT_ROW_BYTES, FIT_TREE_BYTES = 4, 112, 16
"""Times its table that a fit takes beside it, at most; bytes for each row, whatever its width, of which scikit-learn
has about 100; and bytes for each row and tree of a round: gradients of both orders, and the sum of the trees so far."""

HISTOGRAM_BYTES = 2 * 256 * 16
"""Bytes for each leaf and feature: a histogram of 256 bins of two sums in double precision. XGBoost keeps those of all
nodes, twice as many as leaves; the others keep fewer."""


def work(point: Point) -> int:
    """Operations of one step, or what grows as they do where they are not known."""
    if point.training:
        return point.size
    network = point.network
    if not point.is_fit:
        return network.flops_per_step(point.batch_size)
    numbers = point.samples * network.sample_bytes // network.number_bytes
    return FIT_OPERATIONS * numbers * point.rounds * _trees(network.classes)


def step_bytes(point: Point, at_once: int) -> int:
    """Bytes that a step of one's network or fit holds beside its samples.

    Args:
        point: the training; none of one's own.
        at_once: samples of a batch that are trained at once.
    """
    network = point.network
    if not point.is_fit:
        return network.memory_bytes(at_once)
    of_row = FIT_TABLES * network.sample_bytes + FIT_ROW_BYTES + FIT_TREE_BYTES * _trees(network.classes)
    features = network.sample_bytes // network.number_bytes
    return FIT_BYTES + point.samples * of_row + min(point.leaves, point.samples) * features * HISTOGRAM_BYTES


def _trees(classes: int) -> int:
    """Trees of a round: of two classes one tells both."""
    return classes if classes > 2 else 1
