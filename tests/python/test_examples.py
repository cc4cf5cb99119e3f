"""The examples print the diagnosis that their text promises."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from conftest import ROOT, Run

EXAMPLES = ROOT / "examples"


def _bug_line(name: str) -> int:
    lines = (EXAMPLES / name).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if "# the bug" in text)


def _run(python: Run, name: str) -> str:
    ran = python(str(EXAMPLES / name))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def test_transformer(python: Run) -> None:
    name = "find_nan_in_transformer.py"
    out = _run(python, name)
    assert re.search(rf"log .*\[model\.layer1\].*{name}:{_bug_line(name)}", out), out
    assert "-Inf" in out
    assert re.search(r"\d+ traced ops", out)
    path = out[out.index("Path to target") :]
    found = re.findall(r"\[\d+\] (\w+) ", path)
    assert found == ["log", "mean", "unsqueeze", "add", "layer_norm"], out
    marked = [line for line in path.splitlines() if "became NaN" in line]
    assert len(marked) == 1, out
    assert "layer_norm" in marked[0]


def test_the_readme_shows_what_it_prints(python: Run) -> None:
    readme = (ROOT / "README.md").read_text()
    shown = readme.partition("```text\n")[2].partition("```")[0]
    printed = _run(python, "find_nan_in_transformer.py")
    # The folder of the clone decides where lines of prose are broken, and the processor the last digits.
    assert re.findall(r"\[\d+\] \w+|\w+\.py:\d+", printed) == re.findall(r"\[\d+\] \w+|\w+\.py:\d+", shown)
    assert printed.split()[:12] == shown.split()[:12]


def test_gradient(python: Run) -> None:
    name = "find_nan_gradient.py"
    out = _run(python, name)
    assert re.match(r"loss \d\.\d{4}\n", out), out
    assert f"{name}:{_bug_line(name)}" in out
    assert "SqrtBackward0" in out
    assert "backward" in out


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_digits(python: Run) -> None:
    name = "find_nan_in_digits.py"
    out = _run(python, name)
    assert out.startswith("step 0: loss nan\n")
    assert re.search(rf"div .*{name}:{_bug_line(name)}", out), out
    assert "0" in out


def test_every_example_is_tested() -> None:
    text = Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in text
