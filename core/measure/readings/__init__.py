"""What is read while a contender trains: the clock, and every raw value in one place."""
