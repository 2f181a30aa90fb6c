"""The measuring process: takes jobs from a queue and writes rows to the store."""
