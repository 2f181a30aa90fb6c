"""A training of one's own: its file, its steps, its contender, and what can be seen of it from outside."""
