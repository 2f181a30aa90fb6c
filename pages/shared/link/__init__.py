"""What a link and a session say."""
