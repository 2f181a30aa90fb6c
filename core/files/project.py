"""Where this project lies: the one place that counts folders upwards."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
PROJECT = PACKAGE.parent
