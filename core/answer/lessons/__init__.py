"""What tutorials and lessons say."""
