"""torch._foreach_div_ of one list element by a zero; only its tensor is asked."""
import torch
OPS = {"_foreach_div_"}
KIND = "+inf"
def build():
    return [torch.ones(3), torch.ones(4), torch.ones(5)]
def step(xs, watch):
    torch._foreach_mul_(xs, 2.0)
    torch._foreach_div_(xs, [1.0, 0.0, 2.0])  # CULPRIT
    torch._foreach_add_(xs, 1.0)
    return xs[1]
