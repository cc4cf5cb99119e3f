"""The logger, TensorBoard and Weights & Biases."""

from __future__ import annotations

import json
import logging
import sys
import types

import pytest
import sherlorch
import torch
from sherlorch.integrations.logging import log_report, to_tensorboard, to_wandb


@pytest.fixture
def report() -> sherlorch.DiagnosisReport:
    with sherlorch.trace() as tracker:
        y = torch.zeros(2, 3).log()
    return tracker.diagnose(y)


def test_a_record_has_the_verdict_and_the_fields(
    report: sherlorch.DiagnosisReport, caplog: pytest.LogCaptureFixture
) -> None:
    log_report(report)
    (record,) = caplog.records
    assert record.name == "sherlorch"
    assert record.levelno == logging.ERROR
    assert record.getMessage() == report.verdict()
    fields = {name: value for name, value in vars(record).items() if name.startswith("sherlorch_")}
    assert fields["sherlorch_op"] == "log"
    assert fields["sherlorch_inf"] == 6
    assert fields["sherlorch_nan"] == 0
    assert fields["sherlorch_location"] == report.culprits[0].location
    json.dumps(fields)


def test_it_serves_as_on_culprit(caplog: pytest.LogCaptureFixture) -> None:
    with sherlorch.trace(on_culprit=log_report):
        torch.zeros(1).log()
    assert [record.name for record in caplog.records] == ["sherlorch"]
    caplog.clear()
    caplog.set_level(logging.CRITICAL, "sherlorch")
    with sherlorch.trace(on_culprit=log_report):
        torch.zeros(1).log()
    assert caplog.records == []


def test_tensorboard_gets_a_text(report: sherlorch.DiagnosisReport) -> None:
    seen: list[object] = []

    class Writer:
        def add_text(self, tag: str, text: str, global_step: int | None = None) -> None:
            seen.append((tag, text, global_step))

    to_tensorboard(report, Writer(), 7)
    ((tag, text, step),) = seen
    assert (tag, step) == ("sherlorch", 7)
    assert all(line.startswith("    ") for line in text.splitlines())
    with pytest.raises(TypeError, match="takes a SummaryWriter, got str"):
        to_tensorboard(report, "runs/")


def test_wandb_is_imported_only_when_used(report: sherlorch.DiagnosisReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match="pip install wandb"):
        to_wandb(report)
    fake = types.ModuleType("wandb")
    vars(fake).update(run=None, Html=lambda text, inject: ("html", len(text) > 100))
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with pytest.raises(ValueError, match="no wandb run is active"):
        to_wandb(report)
    logged: list[object] = []
    run = types.SimpleNamespace(log=lambda values, step: logged.append((values, step)))
    to_wandb(report, run, 3)
    assert logged == [({"sherlorch/report": ("html", True), "sherlorch/verdict": report.verdict()}, 3)]
