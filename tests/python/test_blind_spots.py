"""What could not be looked at is counted and named in the report, never guessed."""

from __future__ import annotations

import warnings

import sherlorch
import torch


def test_what_could_not_be_read_is_counted_and_named() -> None:
    with sherlorch.trace() as tracker:
        torch.empty(2, device="meta") * 2
        torch.relu(torch.ones(2, 3).to_mkldnn())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).clone()
        bad = torch.log(torch.zeros(2))
    report = tracker.diagnose(bad)
    assert {spot.kind for spot in report.blind_spots} == {"no_values", "no_storage", "quantized"}
    text = str(report)
    assert "without values (meta or fake)" in text
    assert "opaque or sparse layouts" in text
    assert "quantized" in text


def test_a_trace_that_saw_everything_has_no_blind_spots() -> None:
    with sherlorch.trace() as tracker:
        bad = torch.log(torch.zeros(2))
    assert tracker.diagnose(bad).blind_spots in ([], ())
    assert "Blind spots: none" in str(tracker.diagnose(bad))
