"""Crossover's core: ask, measure, keep, answer. No Streamlit anywhere below here."""

__version__ = "0.1.0"
