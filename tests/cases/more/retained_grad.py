"""A retained gradient of an intermediate result."""
import torch
OPS = {"log", "LogBackward0", "div"}
KIND = "+inf"
PHASE = "backward"
def build():
    return torch.tensor([0.0, 1.0], requires_grad=True)
def step(x, watch):
    h = x * 3
    h.retain_grad()
    z = h.clamp(max=5).log()  # CULPRIT
    z.sum().backward()
    return h.grad
