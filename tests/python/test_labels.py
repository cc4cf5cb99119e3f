"""Which parameter, buffer or gradient an op on a path has made: OpNode.extra["label"], `= gradient ...` in the text."""

from __future__ import annotations

import gc

import sherlorch
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.sqrt(torch.relu(self.enc(x)) * 0)).sum()


def labels(report: sherlorch.DiagnosisReport) -> list[str]:
    (culprit,) = report.culprits
    found: list[str] = []
    for node in report.paths[culprit.seq]:
        if node.extra["label"] and node.extra["label"] not in found:
            found.append(node.extra["label"])
    return found


def clipped(net: nn.Module) -> torch.Tensor:
    """A training step whose gradient goes bad in the backward of sqrt; the gradients are gone at its end."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.randn(3, 4)).backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return norm


def test_clip_grad_norm_names_the_parameter_whose_gradient_was_bad() -> None:
    net = Net()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        norm = clipped(net)
    report = tracker.diagnose(norm)
    (label,) = labels(report)
    assert label in ("gradient net.enc.weight.grad", "gradient net.enc.bias.grad")
    assert f"= {label}" in str(report)


def test_a_parameter_made_bad_is_reached_through_its_gradient() -> None:
    net = Net()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.randn(3, 4)).backward()
        optimizer.step()
    assert labels(tracker.diagnose(net.enc.bias)) == ["gradient net.enc.bias.grad", "parameter net.enc.bias"]


def test_a_model_that_nobody_watches_is_called_by_its_class() -> None:
    net = Net()
    with sherlorch.trace() as tracker:
        norm = clipped(net)
    assert labels(tracker.diagnose(norm))[0] in ("gradient Net.enc.weight.grad", "gradient Net.enc.bias.grad")


def test_the_origin_of_a_bad_parameter_is_called_by_its_name() -> None:
    net = Net()
    with torch.no_grad():
        net.enc.weight[1, 2] = float("nan")
    with sherlorch.trace() as tracker:
        out = net(torch.randn(3, 4))
    (culprit,) = tracker.diagnose(out).culprits
    assert (culprit.origin, culprit.origin_label) == ("parameter", "parameter Net.enc.weight")


def test_no_automatic_name_where_module_paths_are_off() -> None:
    with sherlorch.trace(module_paths=False) as tracker:
        norm = clipped(Net())
    assert labels(tracker.diagnose(norm)) == []


def test_parameters_in_one_flat_storage_are_told_apart() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.ones(6)
            self.a = nn.Parameter(flat[:3])
            self.b = nn.Parameter(flat[3:])
            self.flat = flat

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.a * x).sum() + (torch.sqrt(self.b * 0) * x).sum()

    net = Flat()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        net(torch.ones(3)).backward()
        with torch.no_grad():
            net.b.sub_(net.b.grad)
            whole = net.flat * 1
    assert labels(tracker.diagnose(net.b)) == ["gradient net.b.grad", "parameter net.b"]
    # All of the storage is neither a nor b.
    assert labels(tracker.diagnose(whole)) == ["gradient net.b.grad", "parameter net.b"]
    assert tracker.diagnose(net.a).ok


def test_memory_of_a_model_that_is_gone_lends_its_name_to_nobody() -> None:
    net = Net()
    with sherlorch.trace() as tracker:
        net(torch.randn(3, 4))
        del net
        gc.collect()
        zero = torch.zeros(4)
        made = [torch.log(zero) for _ in range(200)]
    for tensor in made:
        assert labels(tracker.diagnose(tensor)) == []
