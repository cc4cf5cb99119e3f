"""trace(keep_operands=True): what an in-place op has overwritten is among the witnesses."""

from __future__ import annotations

import pytest
import sherlorch
import torch


def test_the_operand_of_an_in_place_op_is_shown() -> None:
    x = torch.tensor([3.0, 0.0, 1.0])
    with sherlorch.trace(keep_operands=True) as tracker:
        x.log_()
    text = tracker.diagnose(x).to_text()
    assert "log(0.0) = -inf at [1]" in text
    assert "overwritten" not in text
    x = torch.tensor([3.0, 0.0, 1.0])
    with sherlorch.trace() as tracker:
        x.log_()
    assert "overwritten" in tracker.diagnose(x).to_text()


def test_strided_operands_and_lists() -> None:
    x = torch.ones(4, 4)
    x[:, 1] = 0
    with sherlorch.trace(keep_operands=True) as tracker:
        x.t()[1].log_()
        y = [torch.ones(2), torch.tensor([1.0, -1.0])]
        torch._foreach_sqrt_(y)
    assert "log(0.0) = -inf" in tracker.diagnose(x).to_text()
    assert "sqrt(-1.0) = nan" in tracker.diagnose(y[1]).to_text()


def test_a_change_from_outside_is_seen_before_an_in_place_op() -> None:
    """Without the copy a known tensor is looked at after the op, when the old values are gone."""
    x = torch.ones(4)
    with sherlorch.trace(keep_operands=True) as tracker:
        x.add_(1)
        x.numpy()[2] = float("inf")
        x.mul_(2)
    (culprit,) = tracker.diagnose(x).culprits
    assert (culprit.origin, culprit.origin_detail) == ("input", "external write")


@pytest.mark.parametrize("keep", [False, True])
def test_results_are_the_same_and_nothing_stays(keep: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    with sherlorch.trace(keep_operands=keep):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()
    torch.manual_seed(0)
    plain = torch.nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(plain.parameters(), foreach=True)
    for _ in range(3):
        optimizer.zero_grad()
        plain(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    assert torch.equal(model.weight, plain.weight)
