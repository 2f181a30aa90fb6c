"""What speaks against a crossover as it stands: how it was timed, and on how busy a machine."""
