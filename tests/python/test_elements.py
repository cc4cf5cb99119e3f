"""Which elements, and which samples of the batch: what reaches the target and what was dropped; hundreds of millions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import sherlorch
import torch


def traced_rows(keep: list[int]) -> sherlorch.DiagnosisReport:
    x = torch.ones(6, 4)
    x[[1, 3, 5]] = 0
    with sherlorch.trace() as tracker:
        rows = torch.log(x)
        mean = rows[torch.tensor(keep)].mean()
    return tracker.diagnose(mean)


def test_dropped_samples_are_told_from_those_that_reach_the_target() -> None:
    (culprit,) = traced_rows([0, 2, 3, 4]).culprits
    assert culprit.bad_samples == (1, 3, 5)
    assert culprit.dropped_samples == (1, 5)
    assert culprit.dropped_sample_count == 2


def test_nothing_is_dropped_where_all_reach_it() -> None:
    (culprit,) = traced_rows([0, 1, 2, 3, 4, 5]).culprits
    assert culprit.bad_samples == (1, 3, 5)
    assert culprit.dropped_samples == ()


def test_the_report_says_it_in_words() -> None:
    assert "bad in 3 of 6 samples: 1, 3, 5; 1, 5 do not reach the target" in traced_rows([0, 2, 3, 4]).to_text()


def test_all_samples_bad_and_one_kept() -> None:
    x = torch.zeros(3, 2)
    with sherlorch.trace() as tracker:
        rows = torch.log(x)
        kept = rows[1]
    (culprit,) = tracker.diagnose(kept).culprits
    assert culprit.dropped_samples == (0, 2)


_MANY = """
import json, resource, sys
import torch, sherlorch

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

torch.set_num_threads(1)
n = 30_000_000
x = torch.ones(n)
if sys.argv[1] == "runs":
    x.zero_()
elif sys.argv[1] == "alternate":
    x[::2] = 0
else:
    x.bernoulli_(0.5, generator=torch.Generator().manual_seed(0))
y = torch.empty(n)
torch.log(x, out=y)
y.mul_(2)
total = y.sum()
before = peak()
with sherlorch.trace() as tracker:
    torch.log(x, out=y)
    y.mul_(2)
    total = y.sum()
report = tracker.diagnose(total)
print(json.dumps([peak() - before, report.culprits[0].op_name, len(report.culprits), report.culprits[0].certain]))
"""


@pytest.mark.parametrize("pattern", ["runs", "alternate", "random"])
def test_millions_of_bad_elements_take_a_few_mebibytes(pattern: str) -> None:
    ran = subprocess.run([sys.executable, "-c", _MANY, pattern], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    grown, op_name, culprits, certain = json.loads(ran.stdout)
    assert (op_name, culprits) == ("log", 1)
    assert grown < 24, f"{grown:.1f} MiB"
    assert certain == (pattern == "runs")  # past the cap the report says that neighbours were taken together
