"""Tests of core.results."""
