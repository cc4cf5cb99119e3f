"""Adam with eps 0 and zero gradients: 0/0 in step."""
import torch
OPS = {"_foreach_addcdiv_", "addcdiv_", "addcdiv", "_fused_adam_", "div"}
KIND = "nan"
PHASE = "optimizer"
def build():
    torch.manual_seed(0)
    return torch.nn.Linear(2, 2)
def step(m, watch):
    watch(m, "m")
    opt = torch.optim.Adam(m.parameters(), eps=0.0)
    (m(torch.zeros(1, 2))).sum().backward()
    opt.step()  # CULPRIT
    return m(torch.ones(1, 2))
