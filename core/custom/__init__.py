"""For trainings of one's own: adapters that make one of a module, and a look at one's own loop while it trains."""

from .adapters import BATCH_SIZE, ModuleTraining, from_lightning, from_module

__all__ = ["BATCH_SIZE", "ModuleTraining", "from_lightning", "from_module"]
