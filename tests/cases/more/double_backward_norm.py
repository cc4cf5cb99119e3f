"""Gradient penalty: the norm of a zero gradient, differentiated again."""
import torch
OPS = {"sqrt", "SqrtBackward0", "div"}
KIND = None
PHASE = "backward"
def build():
    return torch.nn.Parameter(torch.zeros(3)), torch.ones(2, 3, requires_grad=True)
def step(s, watch):
    w, x = s
    y = (x * w).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    pen = (g.pow(2).sum(1).sqrt() - 1).pow(2).mean()  # CULPRIT
    pen.backward()
    return w.grad
