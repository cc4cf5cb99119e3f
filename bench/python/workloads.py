"""What is run under the tools. Each workload is built anew for a tool that puts hooks on the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from common import Body
from peers import Tool
from torch import nn


class AttentionBlock(nn.Module):
    """The block of the original's own benchmark."""

    def __init__(self, d_model: int, heads: int = 4) -> None:
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.heads = heads

    def forward(self, x):
        batch, seq, width = x.shape
        qkv = self.qkv(x).view(batch, seq, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        scores = (query @ key.transpose(-2, -1)) / (width // self.heads) ** 0.5
        mixed = scores.softmax(-1) @ value
        return self.proj(mixed.transpose(1, 2).reshape(batch, seq, width))


Pass = Callable[[], object]


def block(d_model: int) -> tuple[nn.Module, Pass]:
    torch.manual_seed(0)
    model = AttentionBlock(d_model).eval()
    x = torch.randn(8, 32, d_model)
    return model, torch.no_grad()(lambda: model(x))


def training_step(d_model: int, masked: bool = False, batch: int = 8, seq: int = 64) -> tuple[nn.Module, Pass]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(d_model, 4, 4 * d_model, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(batch, seq, d_model)
    mask = nn.Transformer.generate_square_subsequent_mask(seq) if masked else None

    def step() -> None:
        optimizer.zero_grad()
        model(x, mask=mask, is_causal=False).square().mean().backward()
        optimizer.step()

    return model, step


def tiny() -> tuple[nn.Module, Pass]:
    a, b = torch.ones(4), torch.ones(4)

    def many() -> None:
        for _ in range(TINY_OPS):
            a * b

    return nn.Identity(), many


TINY_OPS = 1000


@dataclass
class Workload:
    case: str
    size: int
    make: Callable[[], tuple[nn.Module, Pass]]
    passes: int  # in one sample, each in a `with` of its own
    backward: bool = False
    ops: int = 0  # in one pass; times are given an op then, not a pass


# A sample takes five milliseconds or more, most ten: in the first passes the caches still hold what another tool left.
WORKLOADS = [
    Workload("block", 64, lambda: block(64), 60),
    Workload("block", 256, lambda: block(256), 15),
    Workload("block", 1024, lambda: block(1024), 3),
    Workload("step", 64, lambda: training_step(64), 3, backward=True),
    Workload("step", 256, lambda: training_step(256), 1, backward=True),
    Workload("masked_step", 64, lambda: training_step(64, masked=True), 3, backward=True),
    Workload("masked_step", 256, lambda: training_step(256, masked=True), 1, backward=True),
    Workload("tiny_op", 4, tiny, 5, ops=TINY_OPS),
]


def body(workload: Workload, tool: Tool | None) -> Body:
    model, one = workload.make()
    if tool is not None and tool.hook is not None:
        tool.hook(model)
    context = tool.context if tool is not None else None
    count = workload.passes

    def plain() -> None:
        for _ in range(count):
            one()

    def traced() -> None:
        for _ in range(count):
            with context():
                one()

    return plain if context is None else traced
