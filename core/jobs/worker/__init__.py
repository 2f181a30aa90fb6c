"""The measuring process: takes jobs from a queue and brings rows to the store."""
