"""Work in Python between the steps. What one learns: while the host plays or counts, a GPU has nothing to do."""

import math

import torch
from torch import nn


def _policy(size, device):
    """A policy of two hidden layers, and its training on what was played."""
    model = nn.Sequential(nn.Linear(4, size), nn.Tanh(), nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 2))
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters())

    def learn(states):
        optimizer.zero_grad()
        (model(states) ** 2).mean().backward()
        optimizer.step()

    return model, learn


def _swing(state, push):
    """A pendulum on a cart, one moment later."""
    place, speed, angle, turn = state
    turn += 0.02 * (9.8 * math.sin(angle) + push * math.cos(angle))
    speed += 0.02 * push
    return [(place + 0.02 * speed) % 2.0, speed % 2.0, (angle + 0.02 * turn) % 3.0, turn % 2.0]


def simulation(size, device):
    """A simulator in Python moves 512 carts ten times, then the policy is trained on where they are."""
    _, learn = _policy(size, device)
    carts = [[0.1, 0.0, 0.01 * at, 0.0] for at in range(512)]

    def step():
        for _ in range(10):
            carts[:] = [_swing(cart, 1.0) for cart in carts]
        learn(torch.tensor(carts).to(device))

    return step


def simulation_in_tensors(size, device):
    """The same carts moved as one tensor, on the device."""
    _, learn = _policy(size, device)
    carts = torch.tensor([[0.1, 0.0, 0.01 * at, 0.0] for at in range(512)]).to(device)

    def step():
        place, speed, angle, turn = carts.unbind(1)
        for _ in range(10):
            turn = turn + 0.02 * (9.8 * angle.sin() + angle.cos())
            speed = speed + 0.02
            place, speed, angle, turn = (place + 0.02 * speed) % 2, speed % 2, (angle + 0.02 * turn) % 3, turn % 2
        carts.copy_(torch.stack([place, speed, angle, turn], 1))
        learn(carts)

    return step


def rollout(size, device):
    """The policy is asked for one move at a time, 32 times, and each is read by the host; then it is trained."""
    model, learn = _policy(size, device)
    cart = [0.1, 0.0, 0.01, 0.0]

    def step():
        nonlocal cart
        seen = []
        with torch.no_grad():
            for _ in range(32):
                move = model(torch.tensor([cart]).to(device)).argmax().item()
                cart = _swing(cart, 1.0 if move else -1.0)
                seen.append(cart)
        learn(torch.tensor(seen).to(device))

    return step


def rollout_of_many(size, device):
    """The policy is asked for the moves of 32 carts at once, and is trained on as many states as before."""
    model, learn = _policy(size, device)
    carts = [[0.1, 0.0, 0.01 * at, 0.0] for at in range(32)]

    def step():
        with torch.no_grad():
            moves = model(torch.tensor(carts).to(device)).argmax(1).tolist()
        carts[:] = [_swing(cart, 1.0 if move else -1.0) for cart, move in zip(carts, moves, strict=True)]
        learn(torch.tensor(carts).to(device))

    return step


def _recommender(size, device):
    """Vectors of users and items, trained on pairs of them."""
    users, items = (nn.Embedding(2000, size).to(device) for _ in range(2))
    optimizer = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.1)
    pairs = torch.randint(0, 2000, (2, 256)).to(device)

    def train():
        optimizer.zero_grad()
        scores = users(pairs[0]) @ items(pairs[1]).T
        nn.functional.cross_entropy(scores, torch.arange(256, device=device)).backward()
        optimizer.step()

    def rank():
        """Which of all items come first for each user, sorted on the host."""
        with torch.no_grad():
            scores = (users(pairs[0]) @ items.weight.T).tolist()
        wanted = pairs[1].tolist()
        firsts = [sorted(range(2000), key=row.__getitem__)[-100:] for row in scores[:8]]
        return sum(item in first for item, first in zip(wanted, firsts, strict=False))

    return train, rank


def metrics(size, device):
    """A ranking is made of all items after every step."""
    train, rank = _recommender(size, device)

    def step():
        train()
        rank()

    return step


def metrics_afterwards(size, device):
    """Rankings are left to the evaluation after the epoch."""
    return _recommender(size, device)[0]
