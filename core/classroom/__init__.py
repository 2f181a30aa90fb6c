"""A class: one question, a code to join by, what everybody expects, and everybody's results together."""
