"""The store: one schema, one row a trial, one atomic file a row. Results in, rows out; no statistics."""
