"""Every program of tests/cases comes out right: line, op, kind, phase, module and origin (score.py says how)."""

from __future__ import annotations

import importlib.util
import pathlib
from types import ModuleType

import pytest
import sherlorch

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


# Each case runs in a forked child, so that one which kills the process fails alone.
@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.filterwarnings("ignore")
def test_case_is_right(case: pathlib.Path) -> None:
    row = SCORE.score_apart(case, sherlorch)
    assert row["verdict"] == "right", row["why"]
