"""For custom scripts: adapters that make a training of a module, and a monitor for your own training loop."""

from .adapters import BATCH_SIZE, ModuleTraining, from_lightning, from_module

__all__ = ["BATCH_SIZE", "ModuleTraining", "from_lightning", "from_module"]
