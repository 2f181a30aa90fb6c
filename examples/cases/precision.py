"""A simulation in double or single precision. What one learns: many GPUs do float64 at a small part of their speed."""

import torch


def _paths(size, device, dtype):
    """Fit the drift of `size` processes of a hundred dimensions, 20 moments each."""
    drift = torch.zeros(100, dtype=dtype, device=device, requires_grad=True)
    noise = torch.randn(20, size, 100, dtype=dtype).to(device)
    optimizer = torch.optim.SGD([drift], lr=0.1)

    def step():
        optimizer.zero_grad()
        state = torch.zeros(size, 100, dtype=dtype, device=device)
        for drawn in noise:
            state = state + 0.05 * (drift - 0.1 * state) + 0.2 * drawn
        ((state.mean(0) - 1) ** 2).sum().backward()
        optimizer.step()

    return step


def double(size, device):
    """In float64, as NumPy computes."""
    return _paths(size, device, torch.float64)


def single(size, device):
    """In float32."""
    return _paths(size, device, torch.float32)
