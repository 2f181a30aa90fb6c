"""What a training is told before its blocks: whether it fits, how fast it is, its first use, its threads."""
