"""GradScaler: unscale_ finds Inf, the user steps the optimizer himself anyway."""
import torch
OPS = {"MulBackward0", "mul"}
KIND = None
PHASE = "backward"
def build():
    return torch.nn.Parameter(torch.ones(3))
def step(p, watch):
    opt = torch.optim.SGD([p], lr=0.1)
    sc = torch.amp.GradScaler("cpu", init_scale=2.0 ** 100)
    loss = (p * 1e30).sum()  # CULPRIT
    sc.scale(loss).backward()
    sc.unscale_(opt)
    opt.step()
    return p
