"""Controls of a question."""
