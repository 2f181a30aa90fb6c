"""Modules in Lightning's manner as trainings of one's own."""

import warnings

import pytest
import torch
from torch import nn

from core.custom import from_lightning

CPU = torch.device("cpu")
BATCHES = [torch.ones(4, 3)]


class Lit(nn.Module):
    """As Lightning's modules are, which look for their trainer wherever they log."""

    def __init__(self, made=lambda optimizer: optimizer):
        super().__init__()
        self.layer, self.made = nn.Linear(3, 1), made

    def log(self, name, value, **options):
        warnings.warn(f"{name}: there is no trainer", stacklevel=2)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return self.made(torch.optim.SGD(self.parameters(), lr=0.1))


def test_logging_does_nothing_as_there_is_no_trainer():
    training = from_lightning(Lit(), BATCHES, CPU)
    training.step(training.place(BATCHES[0]))
    assert training.loss is not None


@pytest.mark.parametrize(
    "made",
    [
        lambda optimizer: {"optimizer": optimizer, "lr_scheduler": None},
        lambda optimizer: [optimizer],
        lambda optimizer: ([optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]),
        lambda optimizer: ({"optimizer": optimizer},),
    ],
)
def test_its_optimizer_is_found_in_whatever_lightning_takes(made):
    training = from_lightning(Lit(made), BATCHES, CPU)
    before = training.module.layer.weight.clone()
    training.step(BATCHES[0])
    assert not torch.equal(before, training.module.layer.weight)


@pytest.mark.parametrize("made", [lambda _: None, lambda optimizer: [optimizer, optimizer]])
def test_a_module_with_no_optimizer_or_several_is_refused(made):
    with pytest.raises(ValueError, match="several optimizers or none"):
        from_lightning(Lit(made), BATCHES, CPU)


def test_a_module_that_uses_its_optimizers_itself_is_refused():
    module = Lit()
    module.automatic_optimization = False
    with pytest.raises(ValueError, match="uses them itself"):
        from_lightning(module, BATCHES, CPU)
