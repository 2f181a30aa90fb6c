"""Where this project lies: the one place that counts folders upwards."""

from pathlib import Path

PROJECT = Path(__file__).parents[2]
