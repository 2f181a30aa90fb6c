"""Answers as files: reports, scripts, pictures, recordings."""
