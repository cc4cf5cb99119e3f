"""MultiheadAttention (need_weights) with an all -inf attention row in training mode."""
import torch
OPS = {"softmax"}
KIND = "nan"
MODULE = "attn"
def build():
    torch.manual_seed(0)
    m = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    mask = torch.zeros(3, 3); mask[1] = float("-inf")
    return m, torch.randn(1, 3, 8), mask
def step(s, watch):
    m, x, mask = s
    watch(m, "attn")
    out, w = m(x, x, x, attn_mask=mask)  # CULPRIT
    out.sum().backward()
    return m.in_proj_weight.grad
