"""Every program of tests/cases comes out right: line, op, kind, phase, module and origin (score.py says how)."""

from __future__ import annotations

import importlib.util
import pathlib
from types import ModuleType

import pytest
import sherlorch
import torch

HERE = pathlib.Path(__file__).parent
CASES = sorted(path for folder in ("original", "mechanism", "public", "more") for path in (HERE / folder).glob("*.py"))


def _scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", HERE / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCORE = _scorer()


def test_there_are_cases() -> None:
    assert len(CASES) >= 209


def _said(case: pathlib.Path, fast: bool) -> list[object]:
    program = SCORE.load(case)
    torch.manual_seed(0)
    state = program.build()
    with sherlorch.trace(fast_shape_ops=fast) as tracker:
        target = program.step(state, tracker.watch)
    found = tracker.diagnose(target).culprits
    return [
        (c.op_name, c.location, c.origin, c.origin_label, c.phase, c.module_path, c.headline, c.certain) for c in found
    ]


def _score_both(cases: list[pathlib.Path], _tracer: object) -> dict[str, str]:
    why = []
    for case in cases:
        fast, everything = _said(case, True), _said(case, False)
        if fast != everything:
            why.append(f"{case.stem}: {fast} and {everything}")
    return {"verdict": "wrong" if why else "right", "why": "\n".join(why)}


# Compiled programs are left out: they start slowly, and what runs is the same ops. 24 cases a child: to fork takes most
# of the time.
@pytest.mark.parametrize("first", range(0, len(CASES), 24))
@pytest.mark.filterwarnings("ignore")
def test_scanning_everything_blames_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCORE, "score", _score_both)  # score_apart calls it in the child
    cases = [case for case in CASES[first : first + 24] if "compile" not in case.stem]
    row = SCORE.score_apart(cases, sherlorch)
    assert row["verdict"] == "right", row["why"]


# Each case runs in a forked child, so that one which kills the process fails alone.
@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_case_is_right(case: pathlib.Path) -> None:
    row = SCORE.score_apart(case, sherlorch)
    assert row["verdict"] == "right", row["why"]
