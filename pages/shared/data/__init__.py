"""What pages read and keep."""
