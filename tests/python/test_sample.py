"""`sample=`: what is looked at in part, what that may miss, and that the report says so."""

import pytest
import sherlorch
import torch

FLOATS = 16 * 2**20 // 4  # from this size on a tensor is looked at in part
BLOCK = 4096 // 4


def one_over(zeros: list[int], **options: object) -> tuple[sherlorch.ProvenanceTracker, torch.Tensor]:
    x = torch.ones(FLOATS)
    x[zeros] = 0.0
    with sherlorch.trace(**options) as tracker:
        y = x.reciprocal()
    return tracker, y


def kinds(report: sherlorch.DiagnosisReport) -> set[str]:
    return {spot.kind for spot in report.blind_spots}


def test_by_default_everything_is_looked_at() -> None:
    tracker, y = one_over([BLOCK])
    report = tracker.diagnose(y)
    assert report.culprits[0].op_name == "reciprocal"
    assert report.culprits[0].certain
    assert "sampled" not in kinds(report)


def test_what_lies_in_a_block_that_is_read_is_found_with_all_elements() -> None:
    tracker, y = one_over([0, 3 * BLOCK], sample=1 / 16)
    report = tracker.diagnose(y)
    assert report.culprits[0].op_name == "reciprocal"
    assert report.culprits[0].certain
    assert report.elements(report.culprits[0]).sum() == 2  # the other one too
    assert "sampled" in kinds(report)


def test_what_was_missed_is_told_as_a_suspicion() -> None:
    tracker, y = one_over([BLOCK], sample=1 / 16)
    report = tracker.diagnose(y)
    culprit = report.culprits[0]
    assert not culprit.certain
    assert culprit.origin == "input"
    assert "written by reciprocal" in culprit.origin_label
    assert "sample=" in culprit.doubt
    assert "looked at in part" in str(report)


def test_the_next_op_that_is_noticed_names_the_one_before_as_a_suspect() -> None:
    x = torch.ones(FLOATS)
    x[BLOCK] = 0.0
    with sherlorch.trace(sample=1 / 16) as tracker:
        y = x.reciprocal()
        total = y.sum()
    report = tracker.diagnose(total)
    culprit = report.culprits[0]
    assert culprit.op_name == "sum"
    assert "written by reciprocal at " in culprit.origin_label
    assert not culprit.certain
    assert "sample=" in culprit.doubt


def test_an_op_that_reads_something_known_as_bad_is_looked_at_whole() -> None:
    x = torch.ones(FLOATS)
    x[0] = 0.0
    with sherlorch.trace(sample=1 / 16) as tracker:
        y = x.reciprocal()
        rolled = y.roll(BLOCK)
    report = tracker.diagnose(rolled)
    assert [(culprit.op_name, culprit.origin) for culprit in report.culprits] == [("reciprocal", "op")]


def test_smaller_tensors_are_always_looked_at_whole() -> None:
    x = torch.ones(FLOATS - 1)
    x[BLOCK] = 0.0
    with sherlorch.trace(sample=1 / 16) as tracker:
        y = x.reciprocal()
    report = tracker.diagnose(y)
    assert report.culprits[0].certain
    assert "sampled" not in kinds(report)


def test_the_most_thorough_of_nested_traces_counts() -> None:
    x = torch.ones(FLOATS)
    x[BLOCK] = 0.0
    with sherlorch.trace(sample=1 / 16) as outer, sherlorch.trace():
        y = x.reciprocal()
    assert outer.diagnose(y).culprits[0].op_name == "reciprocal"
    with outer:
        z = x.reciprocal()
    assert "written by" in outer.diagnose(z).culprits[0].origin_label


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_a_share_is_above_zero_and_at_most_one(share: float) -> None:
    with pytest.raises(ValueError, match="sample="):
        sherlorch.trace(sample=share)
