"""Tests that need an accelerator; they skip with the reason where there is none."""
