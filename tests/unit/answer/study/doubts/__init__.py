"""Tests of core.answer."""
