"""What tutorials and lessons share."""
