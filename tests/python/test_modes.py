"""Handlers of the user's run ops inside ops; the backward of each still leads to the line of its forward op."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sherlorch
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Function(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


Modes = list[Callable[[], contextlib.AbstractContextManager[Any]]]


@pytest.mark.parametrize(
    "modes", [[], [Dispatch], [Function], [Dispatch, Function], [Function, Dispatch]], ids=lambda modes: str(len(modes))
)
@pytest.mark.parametrize("before", range(6))
def test_the_culprit_in_backward_is_on_its_forward_line(modes: Modes, before: int) -> None:
    with sherlorch.trace() as tracker, contextlib.ExitStack() as stack:
        for _ in range(before):  # where the op lies in the recording must not matter
            torch.zeros(3).log()
        for mode in modes:
            stack.enter_context(mode())
        weight = torch.zeros(3, requires_grad=True)
        value = weight.sqrt() * 0  # guilty
        value.sum().backward()
    (culprit,) = tracker.diagnose(weight.grad).culprits
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    guilty = next(i for i, line in enumerate(lines, 1) if line.endswith("# guilty"))
    assert (culprit.op_name, culprit.location) == ("SqrtBackward0", f"{__file__}:{guilty}")
