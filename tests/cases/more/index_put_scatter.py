"""scatter_add of bad rows into a clean buffer; only the row that got it is asked, and it is."""
import torch
OPS = {"div"}
KIND = "nan"
def build():
    return torch.tensor([[1.0, 2], [0, 0], [3, 4]]), torch.tensor([0, 2, 2])
def step(s, watch):
    x, idx = s
    w = x / x.sum(1, keepdim=True)  # CULPRIT
    out = torch.zeros(4, 2)
    out.index_add_(0, idx, w)
    return out[2].exp()
