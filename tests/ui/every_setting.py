"""A training with every setting that a page has a control for, none as usual and few at a stop of a slider."""

from core.question.experiment import Point

LINK = {
    "dataset": "signal",
    "samples": "12345",
    "model": "mlp",
    "hidden_size": "100",
    "depth": "3",
    "batch_size": "77",
    "epochs": "7",
    "learning_rate": "0.03",
    "data_path": "loader",
    "loader_workers": "2",
    "shuffle": "false",
    "seed": "42",
}

POINT = Point(
    dataset="signal",
    samples=12_345,
    model="mlp",
    hidden_size=100,
    depth=3,
    batch_size=77,
    epochs=7,
    learning_rate=0.03,
    data_path="loader",
    loader_workers=2,
    shuffle=False,
    seed=42,
)
"""What the link asks for."""
