"""Tests of `core.jobs`."""
