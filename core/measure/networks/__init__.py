"""Torch modules from the plain layers of `core.question.models`, with weights that depend on the seed alone."""

from core.measure.networks.assembly import build

__all__ = ["build"]
