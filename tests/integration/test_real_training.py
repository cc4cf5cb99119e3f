"""Training code that no one here wrote, with a fault put in at a known place."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import sherlorch
import torch

HERE = pathlib.Path(__file__)


def line_of(mark: str) -> int:
    """The line of this file that ends with `# mark`."""
    return next(n for n, text in enumerate(HERE.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))


def at(report: Any, mark: str) -> Any:
    """The only culprit, which must be on the marked line."""
    assert len(report.culprits) == 1, str(report)
    culprit = report.culprits[0]
    assert str(culprit.location).endswith(f"{HERE.name}:{line_of(mark)}"), str(report)
    return culprit


# --- transformers: GPT-2 from a configuration


def gpt2() -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=32, n_positions=16, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.1, attn_pdrop=0.1, embd_pdrop=0.1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).train()


def gpt2_step(model: Any, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss: torch.Tensor = model(input_ids=ids, labels=ids).loss  # GPT2 FORWARD
    loss.backward()
    optimizer.step()  # GPT2 OPTIMIZER
    return loss


def gpt2_losses(model: Any, steps: int = 4) -> list[float]:
    ids = torch.randint(0, 32, (2, 8), generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return [gpt2_step(model, optimizer, ids).item() for _ in range(steps)]


def test_gpt2_trains_the_same_bit_for_bit() -> None:
    plain = gpt2_losses(gpt2())
    model = gpt2()
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        traced = gpt2_losses(model)
    assert traced == plain


def test_gpt2_layer_norm_weight_is_infinite() -> None:
    model = gpt2()
    with torch.no_grad():
        model.transformer.h[1].ln_2.weight[3] = float("inf")
    ids = torch.randint(0, 32, (2, 8))
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        loss = gpt2_step(model, torch.optim.SGD(model.parameters(), lr=0.1), ids)
    culprit = at(tracker.diagnose(loss), "GPT2 FORWARD")
    assert culprit.op_name == "layer_norm"
    assert culprit.phase == "forward"
    assert culprit.module_path == "model.transformer.h.1.ln_2"
    assert culprit.origin == "parameter"
    assert "ln_2.weight" in culprit.origin_label


def test_gpt2_sqrt_at_zero_in_the_loss() -> None:
    model = gpt2()
    ids = torch.randint(0, 32, (2, 8))
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        hidden = model.transformer(input_ids=ids).last_hidden_state
        distance = (hidden - hidden.detach()).square().sum(-1)
        penalty = distance.sqrt()  # GPT2 PENALTY
        penalty.mean().backward()
    assert tracker.diagnose(penalty).ok
    culprit = at(tracker.diagnose(model.transformer.h[0].attn.c_attn.weight.grad), "GPT2 PENALTY")
    assert culprit.phase == "backward"
    assert culprit.autograd_node == "SqrtBackward0"


def test_gpt2_learning_rate_overflows() -> None:
    model = gpt2()
    ids = torch.randint(0, 32, (2, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=3e38)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        for parameter in model.parameters():
            parameter.grad = None
        loss = model(input_ids=ids, labels=ids).loss
        (loss * 1e3).backward()
        optimizer.step()  # GPT2 OVERFLOW
    report = tracker.diagnose(model.transformer.ln_f.bias)
    culprit = at(report, "GPT2 OVERFLOW")
    assert culprit.phase == "optimizer"
    assert culprit.op_name in {"_foreach_add_", "add_"}


def test_gpt2_adam_without_eps() -> None:
    model = gpt2()
    ids = torch.zeros(2, 8, dtype=torch.long)  # the other words have no gradient but through the head
    optimizer = torch.optim.Adam([model.transformer.wpe.weight], eps=0.0)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        model(input_ids=ids, labels=ids).loss.backward()  # positions 8 to 15 have a gradient of 0
        optimizer.step()  # GPT2 ADAM
        after = model(input_ids=torch.zeros(1, 16, dtype=torch.long)).logits
    culprit = at(tracker.diagnose(after), "GPT2 ADAM")
    assert culprit.phase == "optimizer"
    assert culprit.op_name in {"_foreach_addcdiv_", "addcdiv_"}


# --- torch_geometric: a graph convolution


def gcn(activation: torch.nn.Module | None = None) -> Any:
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    torch.manual_seed(0)
    return pyg.Sequential(
        "x, edges",
        [
            (pyg.GCNConv(4, 8), "x, edges -> x"),
            activation or torch.nn.ReLU(),
            (pyg.SAGEConv(8, 8), "x, edges -> x"),
            torch.nn.LayerNorm(8),
            torch.nn.Linear(8, 3),
        ],
    )


def graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(6, 4, generator=generator)
    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    return x, edges, torch.tensor([0, 1, 2, 0, 1, 2])


def gcn_losses(model: Any, steps: int = 4) -> list[float]:
    x, edges, y = graph()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, edges), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_gcn_trains_the_same_bit_for_bit() -> None:
    plain = gcn_losses(gcn())
    model = gcn()
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        traced = gcn_losses(model)
    assert traced == plain


class LogOfRelu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.relu(x) * 0)  # GCN LOG


def test_gcn_log_of_zero_in_a_wrapped_module() -> None:
    model = gcn(LogOfRelu())
    x, edges, y = graph()
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        loss = torch.nn.functional.cross_entropy(model(x, edges), y)
    culprit = at(tracker.diagnose(loss), "GCN LOG")
    assert culprit.op_name == "log"
    assert culprit.phase == "forward"
    assert culprit.module_path == "model.module_1"


def test_gcn_infinite_slope_times_zero() -> None:
    model = gcn()
    x, edges, _ = graph()
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        out = model(x, edges)
        root = (out * 0).sqrt()  # GCN SQRT
        (root * 0).sum().backward()
    report = tracker.diagnose(next(model.parameters()).grad)
    culprit = at(report, "GCN SQRT")
    assert culprit.phase == "backward"
    assert culprit.autograd_node == "SqrtBackward0"


def test_gcn_learning_rate_overflows() -> None:
    model = gcn()
    x, edges, y = graph()
    optimizer = torch.optim.SGD(model.parameters(), lr=3e38)
    with sherlorch.trace() as tracker:
        tracker.watch(model, "model")
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x, edges) * 100, y)
            if not loss.isfinite():
                break
            loss.backward()
            optimizer.step()  # GCN OVERFLOW
    bad = next(p for p in model.parameters() if not p.isfinite().all())
    culprit = at(tracker.diagnose(bad), "GCN OVERFLOW")
    assert culprit.phase == "optimizer"
    assert "too large" in culprit.explanation or "largest number" in culprit.explanation
