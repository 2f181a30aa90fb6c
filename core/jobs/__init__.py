"""From a question to a running measurement in a separate process, one at a time on a machine."""
