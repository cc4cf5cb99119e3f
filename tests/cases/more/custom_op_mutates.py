"""A custom op that mutates its argument through numpy."""
import torch
OPS = {"hunt::poison", "poison", "div_", "div"}
KIND = None
@torch.library.custom_op("hunt::poison", mutates_args=("x",))
def poison(x: torch.Tensor) -> None:
    x.numpy()[1] = float("nan")
def build():
    return torch.ones(3)
def step(x, watch):
    y = x * 2
    poison(y)  # CULPRIT
    return y + 1
