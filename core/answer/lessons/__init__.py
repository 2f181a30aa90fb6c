"""Answers of tutorials and lessons."""
