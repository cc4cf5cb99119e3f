"""A forward pre-hook divides by zero; the module is innocent."""
import torch
OPS = {"div"}
KIND = "+inf"
def build():
    m = torch.nn.Linear(2, 2)
    def hook(mod, args):
        return (args[0] / 0,)  # CULPRIT
    m.register_forward_pre_hook(hook)
    return m
def step(m, watch):
    watch(m, "m")
    return m(torch.ones(1, 2))
