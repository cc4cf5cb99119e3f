"""A training step whose loss is finite and whose gradient is NaN.

The network learns to bring similar points together. Some pairs of the batch are the same point twice: their distance is
0, the square root of 0 has an infinite slope, and the chain rule multiplies it by the 0 of the difference. Nothing is
wrong with the loss of this step; after the optimizer has run, every parameter is NaN.

    python examples/find_nan_gradient.py
"""

import sherlorch
import torch
from torch import nn


def contrastive_loss(a: torch.Tensor, b: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
    distance = (a - b).square().sum(dim=1).sqrt()  # the bug: its slope at a distance of 0
    apart = torch.relu(1.0 - distance)
    return torch.where(same, distance, apart).mean()


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    left = torch.randn(32, 8)
    right = torch.where(torch.arange(32)[:, None] % 8 == 0, left, torch.randn(32, 8))
    same = torch.arange(32) % 2 == 0

    with sherlorch.trace() as tracker:
        tracker.watch(model, name="model")
        loss = contrastive_loss(model(left), model(right), same)
        loss.backward()
        gradient = model[0].weight.grad

    print(f"loss {loss.item():.4f}")
    if tracker.has_issue(gradient):
        print(tracker.diagnose(gradient))
        optimizer.zero_grad()  # do not let it into the parameters


if __name__ == "__main__":
    main()
