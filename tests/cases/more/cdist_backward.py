"""cdist of equal points: the gradient with p=2 is handled by torch, but sqrt of own distance is not."""
import torch
OPS = {"sqrt", "SqrtBackward0", "div"}
KIND = None
PHASE = "backward"
def build():
    return torch.nn.Parameter(torch.ones(2, 3))
def step(p, watch):
    d = ((p[:, None] - p[None]) ** 2).sum(-1)
    loss = d.sqrt().mean()  # CULPRIT
    loss.backward()
    return p.grad
