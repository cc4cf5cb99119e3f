"""sqrt of |z|^2 at z = 0 in backward; z is complex."""
import torch
OPS = {"sqrt", "SqrtBackward0"}
KIND = None
PHASE = "backward"
def build():
    return torch.zeros(3, dtype=torch.complex64, requires_grad=True)
def step(z, watch):
    m = torch.sqrt(z.real ** 2 + z.imag ** 2)  # CULPRIT
    m.sum().backward()
    return z.grad
