"""Per-sample gradients: vmap(grad(f))."""
import torch
OPS = {"norm", "linalg_vector_norm", "LinalgVectorNormBackward0", "NormBackward", "sqrt", "div", "SqrtBackward0"}
KIND = None
PHASE = "backward"
def loss(w, x):
    h = w * x
    return torch.sqrt(h.sum())  # CULPRIT
def build():
    return torch.ones(3), torch.tensor([[1.0, 2, 3], [0, 0, 0]])
def step(s, watch):
    w, x = s
    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)
