"""How whole steps are run: one after the other, compiled into one function, or replayed as a CUDA graph."""
