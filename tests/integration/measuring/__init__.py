"""Tests: real measurements on the CPU."""
