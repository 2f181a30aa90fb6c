"""Lies on the path of processes that are to have XLA's device, the measuring process among them."""

from tests.xla import bridge

bridge.connect()
