"""Rows in, meaning out: verdicts, causes, agreement and charts. Measures nothing, writes nothing."""
