"""Which parameter, buffer or gradient an op on a path has made: OpNode.extra["label"], `= gradient ...` in the text."""

from __future__ import annotations

import gc
from pathlib import Path

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


def test_a_model_that_nobody_watches_has_no_names_for_its_parameters() -> None:
    with sherlorch.trace() as tracker:
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
        tracker.watch(net)
        net(torch.randn(3, 4))
        del net
        gc.collect()
        zero = torch.zeros(4)
        made = [torch.log(zero) for _ in range(200)]
    for tensor in made:
        assert labels(tracker.diagnose(tensor)) == []


class Two(nn.Module):
    """The gradient of b goes bad."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.ones(3))
        self.b = nn.Parameter(torch.zeros(3))

    def forward(self) -> torch.Tensor:
        return self.a.sum() + (self.b.sqrt() * 0).sum()


def test_swapped_memory_takes_no_name_along() -> None:
    net = Two()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        net.a.data, net.b.data = net.b.data, net.a.data
        net.a.data, net.b.data = torch.ones(3), torch.zeros(3)
        old = net.b.data
        net.b.data = torch.zeros(3)
        old.log_()
        net().backward()
    assert labels(tracker.diagnose(old)) == []  # it was b's, and is not any more
    assert labels(tracker.diagnose(net.b.grad)) in ([], ["gradient net.b.grad"])


def test_a_tensor_that_shares_a_parameters_memory_is_not_that_parameter() -> None:
    net = Two()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        leaf = net.b.detach().requires_grad_()
        (leaf.sqrt() * 0).sum().backward()
    assert labels(tracker.diagnose(leaf.grad)) == []


def test_a_part_of_a_parameters_storage_is_not_the_parameter() -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat = torch.ones(9)
            self.row = nn.Parameter(self.flat[:3])
            self.gaps = nn.Parameter(torch.zeros(8)[::2])

    net = Parts()
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        with torch.no_grad():
            net.flat[5] = 0
            net.flat.log_()
            other = net.gaps.as_strided((4,), (2,), 1)
            other.log_()
    assert labels(tracker.diagnose(net.flat)) == []
    assert labels(tracker.diagnose(other)) == []


def test_what_a_hook_of_a_library_does_in_accumulate_grad_is_not_the_gradient() -> None:
    net = Two()
    # As an installed library's: its lines are not the user's.
    made: list[torch.Tensor] = []
    code = compile("def hook(p):\n    made.append(torch.zeros(3).log())\n", "/x/site-packages/lib.py", "exec")
    scope: dict[str, object] = {"made": made, "torch": torch}
    exec(code, scope)
    net.a.register_post_accumulate_grad_hook(scope["hook"])  # type: ignore[arg-type]
    with sherlorch.trace() as tracker:
        tracker.watch(net, "net")
        net().backward()
    assert labels(tracker.diagnose(made[0])) == []


def test_an_op_of_many_nodes_lends_its_line_to_nobody() -> None:
    gru, head = nn.GRU(3, 3), nn.Linear(3, 1)
    before = torch.zeros(3, requires_grad=True)
    early = before.sqrt() * 0  # not seen
    with sherlorch.trace() as tracker:
        out, _ = gru(torch.randn(60, 1, 3))
        (head(out).sum() + early.sum()).backward()  # seen
    report = tracker.diagnose(before.grad)
    (culprit,) = report.culprits
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(i for i, each in enumerate(text, 1) if each.endswith("# seen"))
    assert (culprit.op_name, culprit.location) == ("SqrtBackward0", f"{__file__}:{line}")
    assert "the line is that of the forward op" not in str(report)
    assert "in backward at" in str(report).splitlines()[0]
    for node in report.paths[culprit.seq]:
        assert node.location == culprit.location
