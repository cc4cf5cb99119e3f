"""swap_tensors gives the name of a good tensor to a bad one."""
import torch
OPS = {"log"}
KIND = "-inf"
def build():
    return torch.ones(3), torch.zeros(3)
def step(s, watch):
    a, b = s
    c = b.log()  # CULPRIT
    torch.utils.swap_tensors(a, c)
    return a * 1.5
