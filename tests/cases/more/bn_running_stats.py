"""An Inf batch poisons running_mean/var in train; the eval pass in the same trace shows it."""
import torch
OPS = {"exp"}
KIND = "+inf"
def build():
    return torch.nn.BatchNorm1d(3), torch.full((4, 3), 100.0)
def step(s, watch):
    bn, x = s
    watch(bn, "bn")
    bn(x.exp())  # CULPRIT
    bn.eval()
    return bn(torch.ones(2, 3))
