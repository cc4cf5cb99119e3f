"""scripts/check_layers.py passes on this tree and fails on a planted violation of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "scripts/check_layers.py"), str(root)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def test_this_tree_is_clean() -> None:
    assert check(ROOT) == (0, "")


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("core/base/ids.h", '"core/graph/shadow.h"'),
        ("core/graph/shadow.cpp", '"core/report/text.h"'),
        ("core/graph/shadow.cpp", '"sherlorch/diagnosis.h"'),
        ("core/diagnose/blame.cpp", '"sherlorch/report.h"'),
        ("core/report/text.cpp", '"sherlorch/tracker.h"'),
        ("core/record/recorder.cpp", '"core/diagnose/diagnose.h"'),
        ("core/diagnose/blame.cpp", '"core/record/recorder.h"'),
        ("core/scan/scan.cpp", '"adapter/observer.h"'),
        ("core/scan/scan.cpp", "<ATen/core/TensorBase.h>"),
        ("core/scan/scan.cpp", "<torch/torch.h>"),
        ("core/base/ids.cpp", "<Python.h>"),
        ("adapter/observer.cpp", '"bindings/module.h"'),
        ("adapter/observer.cpp", "<pybind11/pybind11.h>"),
        ("adapter/observer.cpp", "<torch/extension.h>"),
        ("include/sherlorch/tracker.h", '"core/base/ids.h"'),
        ("include/sherlorch/diagnosis.h", "<ATen/core/TensorBase.h>"),
        ("include/sherlorch/diagnosis.h", '"core/base/ids.h"'),
    ],
)
def test_planted_violation_fails(tmp_path: Path, path: str, included: str) -> None:
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f"// A comment.\n#include <vector>\n#include {included}\n")

    code, output = check(tmp_path)

    assert code == 1
    assert output.startswith(f"{path}:3: ")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("core/report/text.cpp", '"core/diagnose/explain.h"'),
        ("core/report/text.cpp", '"sherlorch/report.h"'),
        ("core/diagnose/diagnose.h", '"sherlorch/diagnosis.h"'),
        ("core/base/ids.h", '"sherlorch/types.h"'),
        ("core/record/recorder.cpp", '"core/scan/scan.h"'),
        ("adapter/observer.cpp", '"core/record/recorder.h"'),
        ("adapter/observer.cpp", "<ATen/record_function.h>"),
        ("bindings/frames.c", "<Python.h>"),
        ("bindings/module.cpp", '"adapter/observer.h"'),
        ("include/sherlorch/tracker.h", "<ATen/core/TensorBase.h>"),
        ("include/sherlorch/tracker.h", '"sherlorch/export.h"'),
    ],
)
def test_include_that_points_down_passes(tmp_path: Path, path: str, included: str) -> None:
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f"#include {included}\n")

    assert check(tmp_path) == (0, "")


def test_file_outside_the_layers_is_reported(tmp_path: Path) -> None:
    stray = tmp_path / "core/misc/stray.cpp"
    stray.parent.mkdir(parents=True)
    stray.write_text("")

    assert check(tmp_path) == (1, "core/misc/stray.cpp:1: lies in no layer that scripts/check_layers.py knows\n")
