"""fast_shape_ops=False scans everything, and says the same."""

from __future__ import annotations

import os

import pytest
import sherlorch
import torch

from .compare import traced
from .generator import generate
from .oracle import is_values

PROGRAMS = int(os.environ.get("SHERLORCH_SCAN_EVERYTHING_PROGRAMS", "2000"))


def diagnosis(report: sherlorch.DiagnosisReport) -> list[object]:
    """Who is to blame for what, and the way to the target, without what differs between two runs of one program."""
    said: list[object] = [report.ok]
    for culprit in report.culprits:
        line = (culprit.location or "").rpartition(":")[2]
        kinds = (culprit.has_nan, culprit.has_inf, tuple(culprit.shape))
        path = [step.op_name for step in report.paths[culprit.seq]]
        said.append((culprit.op_name, line, culprit.origin, culprit.phase, culprit.module_path, kinds, path))
    return said


def reports(seed: int, fast: bool) -> dict[str, list[object]]:
    program = generate(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(program.deterministic)
    try:
        tracker, env = traced(program, fast_shape_ops=fast)
    finally:
        torch.use_deterministic_algorithms(False)
    said: dict[str, list[object]] = {}
    for name, value in env.items():
        if not is_values(value) or value.numel() == 0:
            continue
        try:
            said[name] = diagnosis(tracker.diagnose(value))
        except sherlorch.UntrackedTensorError:
            said[name] = []
    return said


@pytest.mark.slow
def test_scanning_everything_says_the_same_of_random_programs() -> None:
    blamed = 0
    for seed in range(1_000_000, 1_000_000 + PROGRAMS):
        fast, everything = reports(seed, True), reports(seed, False)
        assert fast == everything, f"seed {seed}\n{generate(seed).source()}"
        blamed += sum(len(report) > 1 for report in fast.values())
    assert blamed > PROGRAMS, "too few faults reach a target"
