"""The EMA copy takes a poisoned parameter over with lerp_; its next forward shows it."""
import copy
import torch
OPS = {"div"}
KIND = "+inf"
MODULE = None
def build():
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    return m, copy.deepcopy(m)
def step(s, watch):
    m, ema = s
    watch(m, "model")
    with torch.no_grad():
        for p in m.parameters():
            p.div_(torch.zeros(()))  # CULPRIT
        for e, p in zip(ema.parameters(), m.parameters()):
            e.mul_(0.9).add_(p, alpha=0.1)
    return ema(torch.ones(1, 3))
