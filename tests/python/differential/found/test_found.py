"""What the random programs have found, as small tests. One that fails still says why, and is strict: mend, and unmark."""

from __future__ import annotations

from typing import Any

import pytest
import sherlorch
import torch

FILE = "/differential/found.py"


def traced(source: str, file: str = FILE, *, deterministic: bool = False) -> tuple[sherlorch.ProvenanceTracker, Any]:
    env = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
    torch.use_deterministic_algorithms(deterministic)
    try:
        with sherlorch.trace() as tracker:
            exec(compile(source, file, "exec"), env)
    finally:
        torch.use_deterministic_algorithms(False)
    return tracker, env


def blamed(source: str, name: str) -> list[tuple[str, int]]:
    tracker, env = traced(source)
    return origins(tracker, env[name])


def origins(tracker: sherlorch.ProvenanceTracker, tensor: torch.Tensor) -> list[tuple[str, int]]:
    culprits = tracker.diagnose(tensor).culprits
    return [(culprit.origin, int(culprit.location.rpartition(":")[2])) for culprit in culprits]


@pytest.mark.parametrize("text", ["torch.div(x, x, out=x)", "torch.log(x, out=x)"])
def test_out_is_the_input(text: str) -> None:
    assert blamed(f"x = torch.tensor([0.0, 1.0, 0.0])\n{text}\n", "x") == [("op", 2)]


@pytest.mark.parametrize("text", ["x.log_()", "x.div_(x)", "x[0].log_()"])
def test_in_place_on_a_literal(text: str) -> None:
    assert blamed(f"x = torch.tensor([0.0, 1.0, 0.0])\n{text}\n", "x") == [("op", 2)]


@pytest.mark.parametrize("memory", ["torch.empty(3)", "torch.tensor([1.0, 1.0, 1.0])"])
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("torch.div(y, y, out=x)", [0, 1, 2]),
        ("x.index_fill_(0, torch.tensor([2]), nan)", [2]),
        ("x.masked_fill_(torch.tensor([True, False, False]), nan)", [0]),
    ],
)
def test_written_without_reading(memory: str, text: str, written: list[int]) -> None:
    tracker, env = traced(f"y = torch.zeros(3)\nx = {memory}\n{text}\n")
    found = origins(tracker, env["x"])
    # What empty memory happens to hold beside the written elements may be bad, and is then an origin of its own.
    if not all(value.isfinite() for i, value in enumerate(env["x"]) if i not in written):
        assert memory == "torch.empty(3)"
        found.remove(("uninitialized", 3))
    assert [line for _, line in found] == [3]


ASSIGNMENTS = ["x[1:]", "x[1]", "x[...]", "x[torch.tensor([0, 1])]", "x[x == 0]"]


@pytest.mark.parametrize("text", ASSIGNMENTS)
def test_assigned_infinity_is_asked_for(text: str) -> None:
    assert blamed(f"x = torch.zeros(3)\n{text} = -inf\n", "x") == []


@pytest.mark.parametrize("text", ASSIGNMENTS)
def test_assigned_nan_is_a_constant(text: str) -> None:
    assert blamed(f"x = torch.zeros(3)\n{text} = nan\n", "x") == [("constant", 2)]


def test_lines_of_code_that_took_anothers_address() -> None:
    wrong = 0
    for blank in range(300):
        before = "y = torch.ones(2); z = y + 1\n" * (blank % 7)
        source = before + "\n" * (blank % 3) + "x = torch.zeros(3)\nx = x.log()\n"
        tracker, env = traced(source)
        (culprit,) = tracker.diagnose(env["x"]).culprits
        wrong += culprit.location != f"{FILE}:{blank % 7 + blank % 3 + 2}"
    assert wrong == 0


BITS = 0x7FC00000


@pytest.mark.parametrize(
    "text",
    [
        f"x.view(torch.int32).fill_({BITS})\ny = x * 2",
        f"x[1].view(torch.int32).fill_({BITS})\nx.relu_()",
        f"x[1].view(torch.int32).fill_({BITS})\nx[0].mul_(0.5)\nx[...] = x",
        f"x.detach()[1].view(torch.int32).fill_({BITS})\nx.cumsum_(0)",
        f"x[1].view(torch.int32).fill_({BITS})",
    ],
)
def test_a_float_written_as_an_integer(text: str) -> None:
    source = f"x = torch.ones(3)\n{text}\n"
    assert blamed(source, "y" if "y =" in text else "x") == [("op", 2)]


def test_two_floats_written_as_integers() -> None:
    one = "x[{}].view(torch.int32).fill_(" + str(BITS) + ")\n"
    assert blamed("x = torch.ones(3)\n" + one.format(0) + one.format(1) + "x.mul_(2)\n", "x") == [("op", 2), ("op", 3)]


@pytest.mark.parametrize("start", ["-torch.ones(2, 3)", "torch.full((2, 3), -1.0)"])
def test_columns_written_from_a_column_beside_them(start: str) -> None:
    source = f"x = {start}\nx = x.rsqrt()\na, b = x.split([1, 2], 1)\nb[...] = a\n"
    assert blamed(source, "x") == [("op", 2)]


def test_a_mask_copied_within_itself() -> None:
    assert blamed("x = torch.full((2, 3, 2), -inf)\na, b = x.split([1, 2], 1)\nb[...] = a\n", "x") == []
