"""What one run says."""
