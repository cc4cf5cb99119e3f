"""A post-accumulate-grad hook poisons the gradient."""
import torch
OPS = {"log_", "log"}
KIND = "-inf"
def build():
    p = torch.nn.Parameter(torch.ones(2))
    def hook(q):
        q.grad.mul_(0).log_()  # CULPRIT
    p.register_post_accumulate_grad_hook(hook)
    return p
def step(p, watch):
    (p * 3).sum().backward()
    return p.grad
