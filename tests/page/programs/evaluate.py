"""A fixture of the page: a checkpoint whose running mean already holds a NaN."""

import torch
from torch import nn


def main() -> None:
    net = nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.BatchNorm1d(10))
    net.load_state_dict(torch.load("checkpoint.pt"))
    net.eval()
    scores = net(torch.randn(32, 20))
    print(scores.sum())


if __name__ == "__main__":
    main()
