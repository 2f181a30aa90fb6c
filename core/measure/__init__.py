"""The measuring half, the only one that imports torch: one training after another, timed."""
