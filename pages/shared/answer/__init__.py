"""What several pages show of an answer."""
