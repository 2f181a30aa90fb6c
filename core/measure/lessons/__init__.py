"""What lessons show: measured and shown, not kept among the results."""
