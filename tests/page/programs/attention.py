"""What the fixtures of the page point at: an attention block whose scores may be exactly 0 under a log."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query = self.query(x).view(batch, length, self.heads, -1).permute(0, 2, 1, 3)
        key = self.key(x).view(batch, length, self.heads, -1).permute(0, 2, 1, 3)
        scores = (query @ key.transpose(-2, -1)) / (width**0.5)
        return torch.log(scores.relu())


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer1 = Attention(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended = self.layer1(x).mean(dim=-1).mean(dim=1)
        return self.norm(x + attended.unsqueeze(-1))


def main() -> None:
    torch.manual_seed(0)
    model = Encoder(width=32)
    loss = model(torch.randn(4, 16, 32)).square().mean()
    print(loss)


if __name__ == "__main__":
    main()
