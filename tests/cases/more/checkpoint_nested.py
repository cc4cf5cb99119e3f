"""A checkpoint in a checkpoint; the fault is in the inner one's backward."""
import torch
from torch.utils.checkpoint import checkpoint
OPS = {"sqrt", "SqrtBackward0"}
KIND = None
PHASE = "backward"
def inner(x):
    y = x * x
    return torch.sqrt(y)  # CULPRIT
def outer(x):
    return checkpoint(inner, x * 2, use_reentrant=False).sin()
def build():
    return torch.tensor([0.0, 1.0], requires_grad=True)
def step(x, watch):
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    return x.grad
