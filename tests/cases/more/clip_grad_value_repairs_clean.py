"""clip_grad_value_ repairs an Inf gradient."""
import torch
OPS = set()
CLEAN = True
def build():
    return torch.zeros(3, requires_grad=True)
def step(w, watch):
    h = torch.sqrt(w)
    h.sum().backward()
    torch.nn.utils.clip_grad_value_([w], 1.0)
    return w.grad
