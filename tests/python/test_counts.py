"""What an op may cost, as counts: they are the same on a slow machine. Times are in bench/."""

import gc
import json
from pathlib import Path

import pytest
import sherlorch
import torch
from conftest import Run
from sherlorch import _native
from torch import nn

MIB = 1 << 20


def test_the_recorder_is_small() -> None:
    facts = _native.recorder_facts()
    assert facts["slot_bytes"] == 104  # under 128 an op; a change here is a decision
    assert facts["slots"] * facts["slot_bytes"] < 32 * MIB


def test_a_loop_of_masked_steps_leaves_nothing_behind() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(2, 8, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(8)
    gc.collect()  # what other tests have left is not counted
    before = _native.recorder_facts()
    seen = []
    with sherlorch.trace():
        for _ in range(150):
            optimizer.zero_grad()
            model(x, mask=mask).square().mean().backward()
            optimizer.step()
            facts = _native.recorder_facts()
            seen.append(tuple(facts[each] - before[each] for each in ("records", "shadows")))
    # What the dead leave is swept away when it has doubled, so the numbers go up and down below a bound.
    for which in (0, 1):
        assert max(row[which] for row in seen) < 200, seen


_GROWTH = """
import gc, json, os, torch, sherlorch

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

torch.set_num_threads(1)
a, b, hidden = torch.ones(4), torch.ones(4), torch.tensor([False, True, False, True])
def run(count, masked):
    for _ in range(count):
        a.masked_fill(hidden, float("-inf")) if masked else a * b
grown = {}
with sherlorch.trace():
    run(270_000, False)  # the ring's pages come into memory as its 262,144 slots are used for the first time
    for name, masked in (("tiny", False), ("masks", True)):
        run(20_000, masked)
        gc.collect()
        before = rss()
        run(200_000 if not masked else 50_000, masked)
        gc.collect()
        grown[name] = rss() - before
print(json.dumps(grown))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the process's size is read from /proc")
def test_the_process_does_not_grow_with_the_ops(python: Run) -> None:
    ran = python("-c", _GROWTH)
    assert ran.returncode == 0, ran.stderr
    grown = json.loads(ran.stdout)
    assert grown["tiny"] < 2 * MIB, grown
    assert grown["masks"] < 2 * MIB, grown


def _ops_of(run) -> int:
    with sherlorch.trace() as tracker:
        run()
    return tracker.op_count


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        qkv = self.qkv(x).view(2, 8, 3, 4, 4).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        scores = (query @ key.transpose(-2, -1)) / 2.0
        return self.proj((scores.softmax(-1) @ value).transpose(1, 2).reshape(2, 8, 16))


def test_a_fixed_model_has_a_fixed_number_of_ops() -> None:
    model, x = _Block().eval(), torch.randn(2, 8, 16)
    with torch.no_grad():
        # linear, view, permute, 3 select, transpose, matmul, div, softmax, matmul, transpose, reshape, linear
        assert _ops_of(lambda: model(x)) == 14


def _facts_of(run) -> dict[str, int]:
    """By how much the recorder's counters grow."""
    before = _native.recorder_facts()
    with sherlorch.trace():
        run()
    after = _native.recorder_facts()
    return {key: after[key] - before[key] for key in ("ops", "scans", "tickets")}


def test_a_fixed_model_has_a_fixed_number_of_scans() -> None:
    model, x = _Block().eval(), torch.randn(2, 8, 16)
    with torch.no_grad():
        # linear, matmul, div, softmax, matmul, reshape (copies), linear; the views are not scanned
        assert _facts_of(lambda: model(x))["scans"] == 7


def _step() -> tuple[nn.Module, torch.optim.Optimizer, torch.Tensor]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), torch.randn(2, 8, 16)


def _facts_of_a_step() -> dict[str, int]:
    model, optimizer, x = _step()

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step()
    _facts_of(step)  # the storages are met
    return _facts_of(step)


def test_a_training_step_takes_no_more_scans_and_bytes_than_it_did() -> None:
    # Where storages lie can add a scan, as notes of storages share places: so the least of several.
    found = min((_facts_of_a_step() for _ in range(5)), key=lambda facts: facts["scans"])
    slot = _native.recorder_facts()["slot_bytes"]
    assert found["scans"] <= 429, found  # in 513 ops
    assert slot * found["tickets"] / found["ops"] < 128, found  # its regions are in it


def test_recording_again_costs_the_same_number_of_ops() -> None:
    model, x = _Block(), torch.randn(2, 8, 16)
    counts = {_ops_of(lambda: model(x).sum().backward()) for _ in range(5)}
    assert len(counts) == 1, counts


def test_an_op_takes_one_slot_and_the_finite_leave_no_record() -> None:
    a = torch.ones(4)
    before = _native.recorder_facts()
    with sherlorch.trace():
        for _ in range(1000):
            a * a
        after = _native.recorder_facts()
    assert after["ops"] - before["ops"] == 1000
    assert after["records"] == before["records"]
    assert after["shadows"] == before["shadows"]
