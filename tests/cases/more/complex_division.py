"""A complex division by zero seen through its real view."""
import torch
OPS = {"div"}
KIND = None
def build():
    return torch.randn(6, dtype=torch.complex64), torch.zeros(6, dtype=torch.complex64)
def step(s, watch):
    a, b = s
    c = a / b  # CULPRIT
    return torch.view_as_real(c).sum(-1).mean()
