"""A class: one question, a code to join with, the predictions of all students, and their results together."""
