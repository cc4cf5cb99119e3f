"""A cast to float8_e5m2 of a value past its limit overflows to Inf; the cast back is a carrier."""
import torch
OPS = {"to", "_to_copy"}
KIND = "+inf"
def build():
    return torch.tensor([1.0, 1e9])
def step(x, watch):
    small = x.to(torch.float8_e5m2)  # CULPRIT
    return small.to(torch.float32).sum()
