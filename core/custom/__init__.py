"""For custom scripts: adapters that make a training of existing code, and a monitor for your own training loop.

The adapters, here, are for a file with `build(size, device)`: a module with a loss and data, or a Lightning-style
module. Adapters are optional: `build` may return any function that trains a batch.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

__all__ = ["BATCH_SIZE", "ModuleTraining", "from_lightning", "from_module"]


BATCH_SIZE = 64


class ModuleTraining:
    """A module in training: what `core run --training` looks for in what `build` returns.

    Attributes:
        batches: an iterable that is gone through over and over.
        loss: of the last step, on the device; None before.
    """

    def __init__(
        self,
        module: nn.Module,
        loss_of: Callable[[nn.Module, Any, int], Tensor],
        batches: Iterable[Any],
        optimizer: torch.optim.Optimizer,
        device: torch.device,
    ) -> None:
        self.module, self.batches, self.optimizer = module, batches, optimizer
        self._loss_of, self._device, self._number = loss_of, device, 0
        self.loss: Tensor | None = None

    def parameters(self) -> Iterable[Tensor]:
        """Return the parameters to train."""
        return self.module.parameters()

    def place(self, batch: Any) -> Any:
        """Put a batch on the device, whatever of tensors it is made of."""
        if isinstance(batch, Tensor):
            return batch.to(self._device)
        if isinstance(batch, dict):
            return {name: self.place(part) for name, part in batch.items()}
        return tuple(map(self.place, batch)) if isinstance(batch, list | tuple) else batch

    def step(self, batch: Any) -> None:
        """Train one batch."""
        self.optimizer.zero_grad()
        loss = self._loss_of(self.module, batch, self._number)
        loss.backward()
        self.optimizer.step()
        self.loss, self._number = loss.detach(), self._number + 1


def from_module(
    module: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    data: Dataset[Any] | Iterable[Any],
    device: torch.device,
    optimizer: Callable[[Iterable[Tensor]], torch.optim.Optimizer] = torch.optim.Adam,
) -> ModuleTraining:
    """Return a module that is trained with a loss on pairs of input and target.

    Args:
        module: as it was made; it is put on the device here.
        loss: of the module's output and the target.
        data: a data set, of which shuffled batches of 64 are made, or anything that gives batches over and over.
        device: as `build` got it.
        optimizer: makes one of the module's parameters.
    """
    module = module.to(device).train()
    batches = DataLoader(data, BATCH_SIZE, shuffle=True, drop_last=True) if isinstance(data, Dataset) else data
    return ModuleTraining(
        module, lambda of, batch, _: loss(of(batch[0]), batch[1]), batches, optimizer(module.parameters()), device
    )


def from_lightning(module: Any, batches: Iterable[Any], device: torch.device) -> ModuleTraining:
    """Return a training of a module with Lightning's `training_step` and `configure_optimizers`, without Lightning.

    Its callbacks, its logging, its schedules and its trainer play no part.

    Args:
        module: as it was made; it is put on the device here.
        batches: anything that gives batches over and over, such as its `train_dataloader()`.
        device: as `build` got it.

    Raises:
        ValueError: it has several optimizers or none, or uses them itself, which needs its trainer.
    """
    module = module.to(device).train()
    for logs in {"log", "log_dict"} & set(dir(type(module))):
        setattr(module, logs, _log_nothing)
    optimizers = _optimizers(module.configure_optimizers())
    if len(optimizers) != 1 or not getattr(module, "automatic_optimization", True):
        raise ValueError("It has several optimizers or none, or uses them itself: write its step in build instead.")
    return ModuleTraining(module, _lightning_loss, batches, optimizers[0], device)


def _optimizers(made: Any) -> list[torch.optim.Optimizer]:
    """Return the optimizers that `configure_optimizers` returns: one, a dictionary, several of them, or two lists."""
    if isinstance(made, dict):
        return _optimizers(made.get("optimizer"))
    if isinstance(made, list | tuple):
        return [one for each in made for one in _optimizers(each)]
    return [made] if isinstance(made, torch.optim.Optimizer) else []


def _log_nothing(*_values: Any, **_options: Any) -> None:
    """Where Lightning's would look for its trainer, and warn in each step that there is none."""


def _lightning_loss(module: Any, batch: Any, number: int) -> Tensor:
    said = module.training_step(batch, number)
    loss: Tensor = said["loss"] if isinstance(said, dict) else said
    return loss
