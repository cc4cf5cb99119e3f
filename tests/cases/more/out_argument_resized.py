"""log(..., out=) resizes an empty out tensor; the culprit is the log."""
import torch
OPS = {"log"}
KIND = "-inf"
def build():
    return torch.tensor([1.0, 0.0, 2.0])
def step(x, watch):
    out = torch.empty(0)
    torch.log(x, out=out)  # CULPRIT
    return out * 2
