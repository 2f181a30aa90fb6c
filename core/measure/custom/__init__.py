"""A custom training script: its file, its steps, its contender, and the observations made from outside."""
