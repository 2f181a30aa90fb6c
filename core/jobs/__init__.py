"""From a question to a running measurement in a process of its own, one at a time on a machine."""
