"""How a step is run: one by one, compiled, or as a replayed graph."""
