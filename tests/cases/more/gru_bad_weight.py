"""A GRU whose weight was inf from the start."""
import torch
OPS = {"gru"}
KIND = None
ORIGIN = "parameter"
MODULE = "gru"
def build():
    torch.manual_seed(0)
    g = torch.nn.GRU(3, 4)
    with torch.no_grad():
        g.weight_hh_l0[0, 0] = float("inf")
    return g, torch.randn(5, 2, 3)
def step(s, watch):
    g, x = s
    watch(g, "gru")
    out, h = g(x)  # CULPRIT
    return out
