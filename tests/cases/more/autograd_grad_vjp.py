"""autograd.grad with a vector."""
import torch
OPS = {"pow", "PowBackward0"}
KIND = "+inf"
PHASE = "backward"
def build():
    return torch.tensor([0.0, 4.0], requires_grad=True)
def step(x, watch):
    y = x.pow(0.5)  # CULPRIT
    (g,) = torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y))
    return g
