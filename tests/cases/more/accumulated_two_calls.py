"""Gradients of two backward calls; only the second is bad."""
import torch
OPS = {"LogBackward0", "log", "div"}
KIND = "+inf"
PHASE = "backward"
def build():
    return torch.nn.Parameter(torch.zeros(2))
def step(p, watch):
    (p + 1).log().sum().backward()
    (p.log() * 1).nan_to_num().sum()
    q = p.log()  # CULPRIT
    q.sum().backward()
    return p.grad
