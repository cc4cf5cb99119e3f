"""A trace changes nothing: traced and untraced runs of a training loop agree to the last bit."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path
from typing import Any

import pytest
import sherlorch
import torch
from conftest import run_python
from sherlorch import _native
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(12, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.3)
        self.attend = nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.embed(x)).relu_()
        h = self.drop(h)
        h[:, ::2].mul_(1.5)
        mask = torch.full((4, 4), float("-inf")).triu(1)
        rows = h.view(-1, 4, 16)
        attended, _ = self.attend(rows, rows, rows, attn_mask=mask, need_weights=False)
        return self.head((rows + attended).flatten(0, 1))


def _aliases(tensors: dict[str, torch.Tensor]) -> set[frozenset[str]]:
    """Who shares storage with whom, by name."""
    groups: dict[int, set[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault(tensor.untyped_storage().data_ptr(), set()).add(name)
    return {frozenset(group) for group in groups.values()}


def _train(tracker: sherlorch.ProvenanceTracker | None, *, foreach: bool) -> dict[str, Any]:
    torch.manual_seed(7)
    random.seed(7)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=foreach, amsgrad=True)
    if tracker is not None:
        tracker.watch(model)
    seen: dict[str, Any] = {"losses": [], "grads": [], "versions": [], "aliases": [], "grad_aliases": []}
    kept: list[torch.Tensor] = []
    for step in range(5):
        for _ in range(2):  # gradient accumulation
            x = torch.randn(16, 12)
            out = model(x)
            view = out.detach()[1:]
            loss = nn.functional.cross_entropy(out, torch.randint(0, 3, (16,)))
            loss.backward()
            seen["losses"].append(loss.item())
            live = {"out": out, "view": view, "x": x, "loss": loss}
            seen["versions"].append([tensor._version for tensor in live.values()])
            seen["aliases"].append(_aliases(live))
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        seen["grad_aliases"].append(_aliases(gradients))
        seen["grads"].append({name: gradient.clone() for name, gradient in gradients.items()})
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 2:
            optimizer.zero_grad(set_to_none=False)
        else:
            optimizer.zero_grad()
        kept.append(torch.rand(3))
    seen["state"] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seen["moments"] = [
        value.clone() for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)
    ]
    seen["parameter_versions"] = [parameter._version for parameter in model.parameters()]
    seen["rng"] = torch.get_rng_state()
    seen["python_rng"] = random.getstate()
    seen["drawn"] = kept
    return seen


def _same(a: Any, b: Any, where: str) -> None:
    if torch.is_tensor(a):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        # Bits, not values: a NaN is to be the same NaN, and -0.0 is not 0.0.
        assert torch.equal(*(tensor.reshape(-1).contiguous().view(torch.uint8) for tensor in (a, b))), where
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            _same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for number, (left, right) in enumerate(zip(a, b, strict=True)):
            _same(left, right, f"{where}[{number}]")
    else:
        assert a == b, where


@pytest.mark.parametrize("foreach", [False, True])
def test_training_is_bit_identical_under_a_trace(foreach: bool) -> None:
    plain = _train(None, foreach=foreach)
    with sherlorch.trace() as tracker:
        traced = _train(tracker, foreach=foreach)
    assert tracker.op_count > 500  # or nothing was traced
    _same(plain, traced, "run")


def test_the_comparison_would_notice_one_draw_more() -> None:
    plain = _train(None, foreach=True)
    torch.manual_seed(0)
    with pytest.raises(AssertionError):
        _same(plain, {**plain, "rng": torch.get_rng_state()}, "run")


def test_traps_and_scanning_everything_change_nothing_either() -> None:
    plain = _train(None, foreach=True)
    found: list[object] = []
    with sherlorch.trace(fast_shape_ops=False, on_culprit=found.append) as tracker:
        traced = _train(tracker, foreach=True)
    _same(plain, traced, "run")
    assert found == []  # a mask of -inf is no accident


def test_an_exception_inside_the_recorder_changes_nothing_and_is_counted() -> None:
    plain = _train(None, foreach=True)
    with sherlorch.trace() as tracker:
        _native.inject_failures(20)  # of the ops on masks of -inf
        try:
            traced = _train(tracker, foreach=True)
        finally:
            _native.inject_failures(0)
        bad = torch.zeros(2).log()
    _same(plain, traced, "run")
    report = tracker.diagnose(bad)
    (spot,) = [spot for spot in report.blind_spots if spot.kind == "recorder_error"]
    assert spot.count == 20
    assert "20 ops could not be recorded because of an error inside sherlorch itself" in str(report)


def test_a_traced_module_keeps_no_hooks_and_nothing_stays_alive() -> None:
    import gc
    import weakref

    model = Net()
    x = torch.randn(16, 12)
    with sherlorch.trace() as tracker:
        tracker.watch(model)
        out = model(x)
        gone = weakref.ref(out)
        del out
        gc.collect()
        assert gone() is None, "the trace keeps a tensor alive"
    assert all(not m._forward_pre_hooks and not m._forward_hooks for m in model.modules())
    weak = weakref.ref(model)
    del model
    gc.collect()
    assert weak() is None, "the tracker keeps the model alive"


_PEAK = """
    import resource, sys, torch, sherlorch
    from contextlib import nullcontext
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
    optimizer = torch.optim.AdamW(model.parameters())
    def steps(n):
        for _ in range(n):
            model(torch.randn(32, 64)).square().mean().backward()
            optimizer.step(); optimizer.zero_grad()
    steps(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with sherlorch.trace() if sys.argv[1] == "traced" else nullcontext():
        steps(400)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_peak_memory_grows_by_the_recorders_fixed_size_at_most(tmp_path: Path) -> None:
    script = tmp_path / "peak.py"
    script.write_text(textwrap.dedent(_PEAK))
    grown = {}
    for mode in ("plain", "traced"):
        ran = run_python(str(script), mode, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        grown[mode] = int(ran.stdout) / 1024
    # 32 MiB is the recorder's fixed size at default settings (docs/limits.md); the rest is the allocator's noise.
    assert grown["traced"] - grown["plain"] < 32 + 8, grown
