"""Benchmarks: run by hand, reported in docs, never asserted in tests."""
