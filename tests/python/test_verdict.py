"""What a verdict says of itself: whether it is certain, what it belongs to, and what did not matter."""

from __future__ import annotations

import pytest
import sherlorch
import torch


def test_a_node_counts_heads_and_steps_tell_one_story() -> None:
    w = torch.zeros(3, requires_grad=True)
    with sherlorch.trace() as tracker:
        (torch.pow(w, 0.5) * 0).sum().backward()
    report = tracker.diagnose(w.grad)
    (culprit,) = report.culprits
    assert culprit.op_name == "PowBackward0"
    assert culprit.has_nan
    path = report.paths[culprit.seq]
    assert path[0] == culprit
    assert all("PowBackward0" not in str(node.extra.get("autograd_node")) for node in path[1:])
    assert "0 * inf is nan" in culprit.headline
    assert "turned it into" not in str(report)


def test_a_mask_is_innocent_and_what_made_nan_of_it_is_named() -> None:
    with sherlorch.trace() as tracker:
        scores = torch.ones(2, 3).masked_fill(torch.tensor([[True], [False]]), float("-inf"))
        weights = scores.softmax(-1)
    report = tracker.diagnose(weights)
    (culprit,) = report.culprits
    assert (culprit.op_name, culprit.origin, culprit.cause) == ("softmax", "constant", "deliberate infinity")
    assert culprit.origin_label.startswith("-inf of masked_fill at test_verdict.py:")
    first = str(report).splitlines()[0]
    assert "out of an infinity that the program put there" in first
    assert "before any op touched it" not in str(report)
    assert [node.op_name for node in report.deliberate] == ["masked_fill"]


def test_flags_and_choices_are_no_operands() -> None:
    with sherlorch.trace() as tracker:
        loss = torch.nn.functional.mse_loss(torch.full((2,), 1e30), torch.zeros(2), reduction="sum")
    (culprit,) = tracker.diagnose(loss).culprits
    assert [operand.name for operand in culprit.operands] == ["self", "target"]


def test_an_op_without_an_element_map_takes_the_certainty() -> None:
    w = torch.tensor([[0.0, 1.0, 2.0]], requires_grad=True)
    with sherlorch.trace() as tracker:
        w.gather(1, torch.tensor([[0, 1]])).sqrt().sum().backward()
    report = tracker.diagnose(w.grad)
    (culprit,) = report.culprits
    assert culprit.op_name == "SqrtBackward0"
    assert not culprit.certain
    assert "the path goes through 1 op" in culprit.doubt
    assert str(report).startswith("not certain: SqrtBackward0 made Inf")
    assert any("1 op on the way has no element map" in spot.text for spot in report.blind_spots)


def test_the_call_of_a_loop_that_did_it_first_is_told() -> None:
    with sherlorch.trace() as tracker:
        total = torch.zeros(1)
        for k in range(5):
            total = total + 1 / torch.tensor([2.0 - k])
    (culprit,) = tracker.diagnose(total).culprits
    assert culprit.first_call == 3
    assert "in call 3 of this line" in str(tracker.diagnose(total))


def test_what_did_not_matter_is_listed_on_request() -> None:
    with sherlorch.trace() as tracker:
        dropped = torch.tensor([-1.0]).sqrt()
        kept = torch.tensor([0.0, 1.0]).log()
        picked = torch.where(torch.tensor([True]), kept[:1], dropped)
    assert [node.op_name for node in tracker.diagnose(picked).culprits] == ["log"]
    (bystander,) = tracker.bystanders(picked)
    assert bystander.op_name == "sqrt"
    assert bystander.has_nan
    assert tracker.bystanders(picked, limit=0) == []
    with pytest.raises(TypeError, match="tensor"):
        tracker.bystanders(3)  # type: ignore[arg-type]


def test_an_in_place_operand_is_told_by_its_history() -> None:
    with sherlorch.trace() as tracker:
        x = torch.tensor([2.0, 3.0]) * 1e38
        x.mul_(10)
    (culprit,) = tracker.diagnose(x).culprits
    operand = culprit.operands[0]
    assert operand.overwritten
    assert operand.max == pytest.approx(3e38)
    assert "none was larger than 3e+38 in magnitude" in " ".join(str(tracker.diagnose(x)).split())
