"""What demonstrations of lessons showed, and their files."""
