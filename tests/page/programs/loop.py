"""A fixture of the page: three lines of one loop, each with a fault of its own."""

import torch

weights = torch.rand(6, 5)
total = torch.zeros(5)
for step in range(12):
    batch = torch.randn(6, 5) * step
    ratio = batch / batch.sum(dim=0)
    gains = torch.exp(batch * 40)
    scaled = (gains.half() - 1).float()
    mask = torch.triu(torch.full((5, 5), float("-inf")), diagonal=1)
    total = total + (ratio * weights).sum(dim=0) + scaled.mean(dim=0)
print(total, mask)
