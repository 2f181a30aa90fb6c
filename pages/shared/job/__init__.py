"""A measurement that is asked for or under way."""
