"""A sparse matrix whose value is 0/0."""
import torch
OPS = {"div"}
KIND = "nan"
def build():
    return torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0])
def step(s, watch):
    i, v, d = s
    w = v / d  # CULPRIT
    a = torch.sparse_coo_tensor(i, w, (2, 2))
    return torch.sparse.mm(a, torch.ones(2, 3))
