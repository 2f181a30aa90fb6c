"""The store: one schema, one row a trial, one atomic file a run. Results in, rows out; no statistics."""
