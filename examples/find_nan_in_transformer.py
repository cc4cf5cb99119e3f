"""A small attention encoder whose output is NaN: which op did it, in which module?

The bug is two modules deep. `Attention` takes the logarithm of attention scores that a ReLU has cut off at zero; the
-Inf survives a mean and a residual addition unnoticed, and LayerNorm turns all of it into NaN.

    python examples/find_nan_in_transformer.py
"""

import sherlorch
import torch
from torch import nn


class Attention(nn.Module):
    """How strongly each word attends to each other one, as log-weights."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        batch, length, width = words.shape
        shape = (batch, length, self.heads, width // self.heads)
        query = self.query(words).view(shape).transpose(1, 2)
        key = self.key(words).view(shape).transpose(1, 2)
        scores = query @ key.transpose(-1, -2) / shape[-1] ** 0.5
        return torch.log(torch.relu(scores))  # the bug: a score of zero


class Encoder(nn.Module):
    """Adds to each word how much attention it gets, and normalises."""

    def __init__(self, vocabulary: int = 100, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layer1 = Attention(width, heads)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        words = self.embedding(tokens)
        attention = self.layer1(words).mean(dim=(1, 3))
        return self.norm(words + attention.unsqueeze(-1))


def main() -> None:
    torch.manual_seed(0)
    model = Encoder()
    tokens = torch.randint(0, 100, (4, 16))

    with sherlorch.trace() as tracker:
        tracker.watch(model, name="model")
        encoded = model(tokens)

    if tracker.has_issue(encoded):
        print(tracker.diagnose(encoded))


if __name__ == "__main__":
    main()
