"""The exceptions of the package. Imports neither torch nor the native module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sherlorch._nodes import Culprit
    from sherlorch._report import DiagnosisReport


class UntrackedTensorError(KeyError):
    """`diagnose` was asked about a tensor that the trace never saw written or read; the message says what to do."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, quotes and all.
        return str(self.args[0]) if self.args else ""


class NonFiniteError(FloatingPointError):
    """An op made a NaN or an infinity by accident, in a trace that was told to stop there.

    Attributes:
        report: The whole diagnosis.
        culprit: The op that did it: the last of `report.culprits` that nothing allows.
    """

    def __init__(self, report: DiagnosisReport, culprit: Culprit | None = None) -> None:
        self.report = report
        self.culprit = culprit if culprit is not None else report.culprits[-1]
        super().__init__(report.verdict(self.culprit))

    def __reduce__(self) -> tuple[type[NonFiniteError], tuple[DiagnosisReport]]:
        return type(self), (self.report,)
