"""A huge weight decay in SGD overflows the parameter in step 2."""
import torch
OPS = {"_foreach_add_", "add_", "step", "add", "_foreach_add", "sub"}
KIND = None
PHASE = "optimizer"
def build():
    return torch.nn.Parameter(torch.full((2,), 1e20))
def step(p, watch):
    opt = torch.optim.SGD([p], lr=1.0, weight_decay=1e10)
    for _ in range(2):
        opt.zero_grad()
        (p * 1e-20).sum().backward()
        opt.step()  # CULPRIT
    return p
