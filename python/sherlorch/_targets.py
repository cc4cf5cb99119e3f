"""Which tensors to ask about when nobody said so: those that a frame or a namespace holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

import torch

from sherlorch import _native
from sherlorch._errors import UntrackedTensorError
from sherlorch._report import DiagnosisReport
from sherlorch._tracker import ProvenanceTracker

# Enough for a batch in a dict of lists; a data set of a million tensors is not walked.
_MAX_ITEMS = 256
_MAX_DEPTH = 2


Accept = Callable[[DiagnosisReport], bool]


def _blames_somebody(report: DiagnosisReport) -> bool:
    return not report.ok


def tensors_in(values: Mapping[str, object], *, gradients: bool = True) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a namespace and their gradients, as the user would write them, the last defined name first."""
    for name, value in reversed(list(values.items())):
        for path, tensor in _tensors(name, value, 0):
            yield path, tensor
            if gradients and tensor.is_leaf and tensor.grad is not None:
                yield f"{path}.grad", tensor.grad


def _tensors(name: str, value: object, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for path, parameter in value.named_parameters():
            yield from _tensors(f"{name}.{path}", parameter, depth)
    elif depth < _MAX_DEPTH and type(value) in (list, tuple, dict):
        items: Any = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
        for number, (key, item) in enumerate(items):
            if number == _MAX_ITEMS:
                break
            yield from _tensors(f"{name}[{key!r}]", item, depth + 1)


def first_finding(
    tracker: ProvenanceTracker,
    values: Mapping[str, object],
    *,
    gradients: bool = True,
    accept: Accept = _blames_somebody,
) -> tuple[str, DiagnosisReport] | None:
    """The first non-finite tensor in a namespace whose diagnosis is accepted, and that diagnosis."""
    for name, tensor in tensors_in(values, gradients=gradients):
        try:
            if not _native.has_issue(tensor):
                continue
            report = tracker.diagnose(tensor)
        except (UntrackedTensorError, RuntimeError, TypeError):
            continue  # a tensor that can't be read or was never seen says nothing
        if accept(report):
            return name, report
    return None


def frames_of(traceback: TracebackType | None) -> Iterator[FrameType]:
    """The frames of a traceback, the innermost first."""
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return reversed(frames)


def finding_in_traceback(
    tracker: ProvenanceTracker,
    traceback: TracebackType | None,
    *,
    gradients: bool = True,
    accept: Accept = _blames_somebody,
) -> tuple[str, DiagnosisReport] | None:
    """The first non-finite tensor among the local variables of a traceback, the innermost frame first."""
    for frame in frames_of(traceback):
        found = first_finding(tracker, frame.f_locals, gradients=gradients, accept=accept)
        if found is not None:
            name, report = found
            return f"{name} in {frame.f_code.co_name}()", report
    return None
