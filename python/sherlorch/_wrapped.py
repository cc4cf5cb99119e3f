"""The tensors inside a wrapper: a tensor subclass with `__torch_dispatch__` that has no memory of its own."""

from __future__ import annotations

import torch


def tensors_inside(tensor: torch.Tensor) -> list[torch.Tensor]:
    """What a wrapper holds, as it says itself (`__tensor_flatten__`) or in its attributes; empty for plain tensors."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return []
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        names, _ = flatten()
        held = [getattr(tensor, name) for name in names]
    else:
        held = list(vars(tensor).values())
    return [value for value in held if isinstance(value, torch.Tensor)]
