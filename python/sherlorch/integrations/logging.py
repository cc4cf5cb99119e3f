"""Logging: the logger "sherlorch", with fields that a structured handler can pick up.

    import logging
    from sherlorch.integrations.logging import log_report

    with sherlorch.trace(on_culprit=log_report):
        train()

A record has the verdict as its message and, beside it, `sherlorch_op`, `sherlorch_location`,
`sherlorch_module`, `sherlorch_phase`, `sherlorch_origin`, `sherlorch_cause`, `sherlorch_nan`,
`sherlorch_inf`, `sherlorch_shape` and `sherlorch_report` (the whole diagnosis as a dictionary).
TensorBoard and Weights & Biases are used only through what the caller passes in, or imported when
their function is called.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from sherlorch._nodes import Counts, Culprit
from sherlorch._report import DiagnosisReport

logger = logging.getLogger("sherlorch")


def _fields(report: DiagnosisReport, culprit: Culprit) -> dict[str, Any]:
    counts: Counts = culprit.extra["counts"]
    return {
        "sherlorch_op": culprit.op_name,
        "sherlorch_location": culprit.location,
        "sherlorch_module": culprit.module_path,
        "sherlorch_phase": culprit.phase,
        "sherlorch_origin": culprit.origin,
        "sherlorch_cause": culprit.cause,
        "sherlorch_shape": culprit.shape,
        "sherlorch_nan": counts.nan,
        "sherlorch_inf": counts.pos_inf + counts.neg_inf,
        "sherlorch_report": report.to_dict(),
    }


def log_report(report: DiagnosisReport, *, level: int = logging.ERROR) -> None:
    """Log one record a culprit. Can be given as `on_culprit`.

    Args:
        report: What `diagnose` returned, or a trap was called with.
        level: The level of the records.
    """
    for culprit in report.culprits:
        if logger.isEnabledFor(level):
            logger.log(level, "%s", report.verdict(culprit), extra=_fields(report, culprit))


def _markdown(report: DiagnosisReport) -> str:
    # Indented by four, Markdown shows it as it is, whatever the user's names contain.
    return "\n".join(f"    {line}" for line in str(report).splitlines())


def to_tensorboard(report: DiagnosisReport, writer: Any, step: int | None = None, *, tag: str = "sherlorch") -> None:
    """Write the report as a text to TensorBoard.

    Args:
        report: The report.
        writer: A `torch.utils.tensorboard.SummaryWriter`, or another object with its `add_text`.
        step: The training step; None: TensorBoard's own default.
        tag: The name under which it appears.

    Raises:
        TypeError: `writer` has no `add_text`.
    """
    add_text = getattr(writer, "add_text", None)
    if add_text is None:
        raise TypeError(
            f"to_tensorboard() takes a SummaryWriter, got {type(writer).__name__}; make one with "
            "torch.utils.tensorboard.SummaryWriter()"
        )
    add_text(tag, _markdown(report), global_step=step)


def to_wandb(report: DiagnosisReport, run: Any = None, step: int | None = None, *, tag: str = "sherlorch") -> None:
    """Log the report's page and its verdict to Weights & Biases.

    Args:
        report: The report.
        run: A run of wandb; None: the one that is active.
        step: The training step; None: wandb's own counting.
        tag: The name under which it appears.

    Raises:
        ImportError: wandb is not installed.
        ValueError: `run` is None and no run is active.
    """
    try:
        wandb = import_module("wandb")
    except ImportError:
        raise ImportError("to_wandb() needs wandb; install it with: pip install wandb") from None
    run = wandb.run if run is None else run
    if run is None:
        raise ValueError("no wandb run is active; call wandb.init() first, or pass run=")
    page = wandb.Html(report._native_or_raise().to_html(), inject=False)
    run.log({f"{tag}/report": page, f"{tag}/verdict": report.verdict()}, step=step)
