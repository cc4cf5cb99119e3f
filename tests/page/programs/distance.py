"""A fixture of the page: the slope of sqrt at 0 is infinite, and the gradient that arrives there is 0."""

import torch
from torch import nn


class Distance(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        squared = (a - b).square().sum(dim=-1)
        # Safe in the forward pass: where() drops the zero. Its gradient comes back all the same.
        return torch.where(squared > 0, squared.sqrt(), torch.zeros_like(squared))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.head = Distance()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x), y)


def main() -> None:
    net = Net()
    x = torch.randn(8, 3)
    y = net.body(x).detach().clone()
    y[0] += 1.0
    net(x, y).sum().backward()
    print(net.body.weight.grad)


if __name__ == "__main__":
    main()
