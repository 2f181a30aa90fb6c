"""A real asynchronous backend that the product does not know: PyTorch/XLA on its CPU device. See `requirements.txt`."""
