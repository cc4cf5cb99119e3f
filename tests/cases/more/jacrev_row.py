"""jacrev of a function with a sqrt at zero."""
import torch
OPS = {"sqrt", "SqrtBackward0", "div"}
KIND = None
PHASE = "backward"
def f(x):
    return torch.sqrt(x) * 2  # CULPRIT
def build():
    return torch.tensor([0.0, 4.0])
def step(x, watch):
    return torch.func.jacrev(f)(x)
