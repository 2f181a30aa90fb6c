"""Fuzzers: seeded inputs that somebody or something changed, and what each must not do to the app.

`python -m tests.fuzz` runs them; `tests/integration/test_fuzzers.py` runs a small part. What is changed, and how, is in
`mutations`, `oddities` and `entries`; what is looked at of each case in `watching`.
"""
