"""The four tutorials that Crossover grew from, as experiments with their exact settings, and what each varies.

Facts only: no published number and no measurement lives here. Where text and code of a tutorial disagree, the
code is followed, and the note says so.
"""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.experiment import Point
from core.sweep import Axis


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One tutorial's training.

    Attributes:
        name: key on the command line and in links.
        title: label for people.
        source: who published it, where and when.
        point: its settings.
        note: what differs from the tutorial, or which of its own contradictions is resolved how.
        axes: what the tutorial itself varies; empty where it trains one model only.
    """

    name: str
    title: str
    source: str
    point: Point
    note: str
    axes: tuple[Axis, ...] = ()


PRESETS: dict[str, Preset] = {
    entry.name: entry
    for entry in (
        Preset(
            name="disc",
            title="Points in a disc",
            source='Penny Xu, "When to use GPU for training?", 2019-09-04',
            point=Point(
                dataset="disc",
                samples=1_000,
                model="doubling-mlp",
                depth=8,
                batch_size=100,
                epochs=100,
                learning_rate=0.1,
                shuffle=False,
            ),
            note="The prose says learning rate 0.01 and points of [-1, 1]; the code's 0.1 and [0, 1] are followed.",
            axes=(Axis(name="depth", values=tuple(range(2, 13))),),
        ),
        Preset(
            name="signal",
            title="Signal and background",
            source='HSF Training, "Run time comparisons"',
            point=Point(
                dataset="signal",
                samples=20_000,
                model="mlp",
                hidden_size=1_000,
                depth=2,
                batch_size=32,
                epochs=5,
                learning_rate=0.01,
                data_path="loader",
            ),
            note="The tutorial's table is not public; a synthetic one of 20 features stands for it.",
            axes=(Axis(name="hidden_size", values=(5, 10, 100, 1_000, 2_000)),),
        ),
        Preset(
            name="mnist-linear",
            title="MNIST with one layer",
            source='Standalone deep-learning lab #12, "GPU with PyTorch"',
            point=Point(
                dataset="mnist",
                samples=50_000,
                model="linear",
                batch_size=128,
                epochs=5,
                learning_rate=0.005,
                data_path="tutorial",
            ),
            note="The last, partial batch of an epoch is left out, so that every timed step does the same work.",
        ),
        Preset(
            name="fashion-cnn",
            title="Fashion-MNIST with a CNN",
            source='deeplizard, "PyTorch on the GPU", 2020-05-19',
            point=Point(
                dataset="fashion-mnist",
                samples=60_000,
                model="cnn",
                width=1,
                batch_size=1_000,
                epochs=1,
                learning_rate=0.01,
                data_path="tutorial",
            ),
            note="One cell of the grid (batch size 1,000, no workers); all 60,000 images are trained on, by plain SGD.",
            axes=(
                Axis(name="batch_size", values=(1_000, 10_000, 20_000)),
                Axis(name="loader_workers", values=(0, 1)),
            ),
        ),
    )
}


def preset(name: str) -> Preset:
    """The preset called `name`.

    Raises:
        InvalidValue: no preset has that name.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise InvalidValue("preset", name, f"one of {', '.join(PRESETS)}") from None
