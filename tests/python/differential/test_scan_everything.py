"""fast_shape_ops=False scans everything, and says the same: whole reports are compared."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
import sherlorch
import torch

from .compare import traced
from .generator import generate
from .oracle import is_values

PROGRAMS = int(os.environ.get("SHERLORCH_SCAN_EVERYTHING_PROGRAMS", "2000"))


def plain(value: Any, tickets: dict[int, int]) -> Any:
    """A report's dict without what differs between two runs of one program, and without `inherited`.

    Tickets are counted from the start of the process, the file's name has the program's number, and `inherited` tells
    which outputs were not scanned.
    """
    if isinstance(value, dict):
        kept = {key: plain(entry, tickets) for key, entry in value.items() if key not in ("parents", "inherited")}
        if "seq" in kept:
            kept["seq"] = tickets.setdefault(kept["seq"], len(tickets))
        return kept
    if isinstance(value, list):
        return [plain(entry, tickets) for entry in value]
    if isinstance(value, str):
        return re.sub(r"node \[\d+\]", "node", re.sub(r"(/differential/)?\d+\.py", "program.py", value))
    return value


def reports(seed: int, fast: bool) -> dict[str, str]:
    program = generate(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(program.deterministic)
    try:
        tracker, env = traced(program, fast_shape_ops=fast)
    finally:
        torch.use_deterministic_algorithms(False)
    said: dict[str, str] = {}
    for name, value in env.items():
        if not is_values(value) or value.numel() == 0:
            continue
        try:
            said[name] = json.dumps(plain(tracker.diagnose(value).to_dict(), {}))  # a NaN is not equal to itself
        except sherlorch.UntrackedTensorError:
            said[name] = ""
    return said


@pytest.mark.slow
def test_scanning_everything_says_the_same_of_random_programs() -> None:
    blamed = 0
    for seed in range(1_000_000, 1_000_000 + PROGRAMS):
        # From one line, which stands in the culprits' stacks.
        fast, everything = (reports(seed, mode) for mode in (True, False))
        assert fast == everything, f"seed {seed}\n{generate(seed).source()}"
        blamed += sum('"origin"' in report for report in fast.values())
    assert blamed > PROGRAMS, "too few faults reach a target"
