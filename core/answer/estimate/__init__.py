"""The estimator of a crossover, on numbers alone: noise of readings, the curve through them, and what they decide."""
