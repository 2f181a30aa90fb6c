"""What many sizes say together."""
