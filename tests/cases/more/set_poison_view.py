"""set_ points a tensor to the poisoned half of a storage."""
import torch
OPS = {"div_"}
KIND = None
def build():
    return torch.ones(8)
def step(x, watch):
    y = x * 1
    y[4:].div_(0)  # CULPRIT
    z = torch.empty(0)
    z.set_(y.untyped_storage(), 4, (4,), (1,))
    return z + 1
