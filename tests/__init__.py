"""Tests of Crossover; `tests.rows` makes rows for all of them."""
