"""Memory that something outside of torch has changed: noticed by looking at what an op reads before it is blamed."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import sherlorch
import torch
from sherlorch import _native

REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
ALPHA = ("add", "sub", "rsub")
BINARY = (*ALPHA, "mul", "maximum", "minimum")


def culprit(tensor: torch.Tensor, tracker: sherlorch.ProvenanceTracker) -> tuple[str, str, str]:
    (found,) = tracker.diagnose(tensor).culprits
    return found.origin, found.origin_detail, found.op_name


def poison(tensor: torch.Tensor, value: float = float("nan")) -> None:
    tensor.numpy()[2] = value


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.mul_(2.0),
        lambda x: x.add_(1.0),
        lambda x: x.sub_(torch.ones(6), alpha=0.5),
        lambda x: x.tanh_(),
        lambda x: torch._foreach_mul_([x], 3.0),
    ],
)
def test_a_nan_that_the_op_cannot_make_was_there(op: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(6)
    with sherlorch.trace() as tracker:
        x.add_(1)
        poison(x)
        op(x)
    assert culprit(x, tracker)[:2] == ("input", "external write")


def test_what_the_op_can_make_is_its_own() -> None:
    x = torch.zeros(6)
    with sherlorch.trace() as tracker:
        x.add_(1).sub_(1)
        x.div_(0.0)
    assert culprit(x, tracker) == ("op", "", "div_")


def test_a_nan_among_the_numbers_is_the_programs() -> None:
    x = torch.zeros(6)
    with sherlorch.trace() as tracker:
        x.add_(1)
        x.mul_(float("nan"))
    assert culprit(x, tracker)[0] == "constant"


@pytest.mark.parametrize("whole", [True, False])
def test_a_part_that_was_bad_before_the_trace(whole: bool) -> None:
    x = torch.ones(6)
    x[5] = float("nan")
    with sherlorch.trace() as tracker:
        (x if whole else x[0]).add_(1)
        x.mul_(2)
    assert culprit(x, tracker)[0] == "input"


def test_an_array_at_an_address_that_was_known() -> None:
    for _ in range(50):
        with sherlorch.trace() as tracker:
            for _ in range(20):
                torch.ones(6).mul_(2)
            x = torch.from_numpy(np.full(6, np.nan, dtype=np.float32))
            x.exp_()
        assert culprit(x, tracker)[0] == "input"


def extremes(dtype: torch.dtype) -> torch.Tensor:
    facts = torch.finfo(dtype)
    positive = [0.0, facts.smallest_normal, facts.smallest_normal / 2, facts.eps, 0.5, 1.0, 1.5, 3.0, 700.0]
    positive += [facts.max / 2, facts.max / 1.5, facts.max]
    return torch.tensor([sign * value for value in positive for sign in (1, -1)], dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", sorted(_native._makes_no_nan()))
def test_no_nan_of_finite_values(name: str, dtype: torch.dtype) -> None:
    x = extremes(dtype)
    assert x.isfinite().all()
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    if name in BINARY:
        a, b = (side.flatten() for side in torch.meshgrid(x, x, indexing="ij"))
        answers = [function(a, b)]
        if name in ALPHA:
            answers += [function(a, b, alpha=alpha) for alpha in x.tolist()]
            answers += [function(a, number, alpha=alpha) for number, alpha in itertools.product(x.tolist(), x.tolist())]
        else:
            answers += [function(a, torch.tensor(number, dtype=dtype)) for number in x.tolist()]
    elif name == "clamp":
        answers = [function(x, low, high) for low, high in itertools.product(x.tolist(), x.tolist())]
    else:
        answers = [function(x)]
    for answer in answers:
        assert not answer.isnan().any()
