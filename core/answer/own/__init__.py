"""What is seen of the steps of a training of one's own: what their time is made of, and what is odd, in sentences."""
