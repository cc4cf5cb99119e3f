"""Fused AdamW with eps 0: only the weight (its gradient is zero) is bad."""
import torch
OPS = {"_fused_adamw_"}
KIND = "nan"
PHASE = "optimizer"
def build():
    torch.manual_seed(0)
    return torch.nn.Linear(2, 2)
def step(m, watch):
    watch(m, "m")
    opt = torch.optim.AdamW(m.parameters(), eps=0.0, fused=True)
    (m(torch.zeros(1, 2))).sum().backward()
    opt.step()  # CULPRIT
    return m.weight
