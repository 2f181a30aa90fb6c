"""One question for many machines, which meet in nothing but the store that they share."""
