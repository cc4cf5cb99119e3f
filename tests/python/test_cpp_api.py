"""A C++ program of its own, built with find_package(sherlorch) against the installed package and its torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sherlorch
import torch
from conftest import ROOT

EXAMPLE = ROOT / "examples" / "cpp"


def _cmake(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["cmake", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)


def _has_compiler() -> bool:
    named = os.environ.get("CXX", "").split()
    return (
        any(shutil.which(name) for name in [*named[:1], "c++", "g++", "clang++"]) and shutil.which("cmake") is not None
    )


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not _has_compiler():
        pytest.skip("no C++ compiler or no cmake")
    folder = tmp_path_factory.mktemp("cpp")
    prefix = f"{sherlorch.cmake_prefix_path};{torch.utils.cmake_prefix_path}"
    configured = _cmake("-S", str(EXAMPLE), "-B", str(folder), f"-DCMAKE_PREFIX_PATH={prefix}")
    assert configured.returncode == 0, configured.stdout + configured.stderr
    built = _cmake("--build", str(folder))
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
def test_example_names_the_backward_op_that_made_the_gradient_nan(build: Path) -> None:
    ran = subprocess.run([build / "train"], cwd=build, capture_output=True, text=True, check=False, timeout=240)

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert ran.stderr == ""
    losses = re.findall(r"^step (\d): loss (\S+)$", ran.stdout, re.MULTILINE)
    assert [step for step, _ in losses] == ["0", "1", "2"], ran.stdout
    assert all(re.fullmatch(r"\d+\.\d+", loss) for _, loss in losses), losses
    assert re.search(r"Culprit #1: .*SqrtBackward0", ran.stdout), ran.stdout
    assert "phase backward" in ran.stdout
    assert "Culprit #2" not in ran.stdout
    # Where Python would give the line, the report says why there is none.
    assert "called from C++" in ran.stdout
    assert ".py" not in ran.stdout
    page = (build / "gradient.html").read_text(encoding="utf-8")
    assert "SqrtBackward0" in page


@pytest.mark.slow
def test_public_headers_stand_on_their_own(build: Path, tmp_path: Path) -> None:
    include = Path(sherlorch.cmake_prefix_path) / "include"
    headers = sorted((include / "sherlorch").glob("*.h"))
    assert [header.name for header in headers] == [
        "diagnosis.h",
        "errors.h",
        "export.h",
        "report.h",
        "tracker.h",
        "types.h",
    ]
    for header in headers:
        if header.name == "tracker.h":  # needs torch: the example includes it
            continue
        source = tmp_path / f"{header.stem}.cpp"
        source.write_text(f"#include <sherlorch/{header.name}>\n")
        compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
        assert compiler is not None
        command = [
            compiler[1],
            "-std=c++20",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{include}",
            str(source),
        ]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert compiled.returncode == 0, compiled.stderr


def test_page_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
    for language, name, count in (("cmake", "CMakeLists.txt", 1), ("cpp", "train.cpp", 2)):
        blocks = re.findall(rf"^```{language} examples/cpp/{name}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert len(blocks) == count
        for block in blocks:
            assert block in (EXAMPLE / name).read_text(encoding="utf-8")
