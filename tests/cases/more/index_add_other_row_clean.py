"""As before but the clean row."""
import torch
OPS = {"div"}
CLEAN = True
def build():
    return torch.tensor([[1.0, 2], [0, 0], [3, 4]]), torch.tensor([0, 2, 2])
def step(s, watch):
    x, idx = s
    w = x / x.sum(1, keepdim=True)
    out = torch.zeros(4, 2)
    out.index_add_(0, idx, w)
    return out[0].exp()
