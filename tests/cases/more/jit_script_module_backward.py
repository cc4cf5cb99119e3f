"""A scripted module whose sqrt's backward is infinite."""
import torch
OPS = {"sqrt", "SqrtBackward0", "DifferentiableGraphBackward", "div", "mul"}
KIND = None
PHASE = "backward"
class M(torch.nn.Module):
    def forward(self, x):
        return torch.sqrt(x)
def build():
    return torch.jit.script(M()), torch.zeros(3, requires_grad=True)
def step(s, watch):
    m, x = s
    y = m(x)  # CULPRIT
    y.sum().backward()
    return x.grad
