"""Values from item(): a Python division by a tensor's item that is zero -> inf literal times."""
import torch
OPS = {"log"}
KIND = "-inf"
def build():
    return torch.zeros(3)
def step(x, watch):
    s = x.log()[0].item()  # CULPRIT
    return torch.ones(2) * s
