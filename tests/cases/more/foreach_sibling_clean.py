"""The sibling of the poisoned list element is clean."""
import torch
OPS = {"_foreach_div_"}
CLEAN = True
def build():
    return [torch.ones(3), torch.ones(4), torch.ones(5)]
def step(xs, watch):
    torch._foreach_div_(xs, [1.0, 0.0, 2.0])
    return xs[2] + 1
