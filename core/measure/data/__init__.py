"""Samples as tensors, and how they reach a device."""
