"""clip_grad_value_ makes Inf finite but leaves NaN; the NaN is the loss's."""
import torch
OPS = {"MulBackward0", "mul", "sqrt", "SqrtBackward0"}
KIND = None
PHASE = "backward"
def build():
    return torch.zeros(3, requires_grad=True)
def step(w, watch):
    h = torch.sqrt(w)  # CULPRIT
    loss = (h * 0).sum()
    loss.backward()
    torch.nn.utils.clip_grad_value_([w], 1.0)
    return w.grad
