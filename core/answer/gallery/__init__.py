"""What is said of thousands of rows at once."""
