"""The CMake build, where it runs without the rest: the core alone, and what is said where torch is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def cmake(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["cmake", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def said(result: subprocess.CompletedProcess[str]) -> str:
    """stderr on one line: CMake folds long messages."""
    return " ".join(result.stderr.split())


def test_core_configures_with_neither_torch_nor_python(tmp_path: Path) -> None:
    result = cmake("-S", str(ROOT), "-B", str(tmp_path), "-DSHERLORCH_ADAPTER=OFF", "-DSHERLORCH_PYTHON=OFF")

    assert result.returncode == 0, result.stderr
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert "libtorch" not in cache
    assert "TORCH_DIR" not in cache
    assert "Python_" not in cache
    assert "Python3_" not in cache


def test_adapter_without_torch_says_what_to_pass(tmp_path: Path) -> None:
    result = cmake("-S", str(ROOT), "-B", str(tmp_path), CMAKE_PREFIX_PATH="")

    assert result.returncode != 0
    assert "sherlorch found no torch: pass -DCMAKE_PREFIX_PATH=" in said(result)


@pytest.mark.parametrize("version", ["2.12.1", "2.14.0"])
def test_adapter_with_another_torch_names_both_versions(tmp_path: Path, version: str) -> None:
    torch = tmp_path / "torch"
    header = torch / "include" / "torch" / "headeronly" / "version.h"
    header.parent.mkdir(parents=True)
    names = ("MAJOR", "MINOR", "PATCH")
    lines = [f"#define TORCH_VERSION_{name} {part}" for name, part in zip(names, version.split("."), strict=True)]
    header.write_text("\n".join(lines) + "\n")
    (torch / "lib").mkdir()
    (torch / "lib" / "libtorch_cpu.so").touch()

    prefix = f"-DCMAKE_PREFIX_PATH={torch}/share/cmake"
    result = cmake("-S", str(ROOT), "-B", str(tmp_path / "build"), prefix)

    assert result.returncode != 0
    assert f"needs torch >=2.13,<2.14, not {version} in" in said(result)


def test_embedded_text_survives_the_compiler(tmp_path: Path) -> None:
    awkward = 'quote " backslash \\ \\u0000 trigraph ??/ percent % semi ; [ ] ${x} @y@ tab\tumlaut ä\nlast line'
    (tmp_path / "a.txt").write_text(awkward, encoding="utf-8")
    (tmp_path / "b.txt").write_text("and b\n" * 20_000)  # 120 KB
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(embed CXX)\n"
        f"include({ROOT}/cmake/SherlorchEmbed.cmake)\n"
        "add_executable(embed main.cpp)\n"
        "sherlorch_embed_text(TARGET embed HEADER x/text.h NAMESPACE ns SYMBOL kText ${CMAKE_SOURCE_DIR}/a.txt "
        "${CMAKE_SOURCE_DIR}/b.txt SYMBOL kNone)\n"
    )
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#include "x/text.h"\n'
        "int main() { std::fwrite(ns::kText, 1, ns::kTextSize, stdout); return int(ns::kNoneSize); }\n"
    )
    build = tmp_path / "build"

    configured = cmake("-S", str(tmp_path), "-B", str(build))
    assert configured.returncode == 0, configured.stderr
    built = cmake("--build", str(build))
    assert built.returncode == 0, built.stdout
    printed = subprocess.run([build / "embed"], capture_output=True, check=True).stdout

    assert printed.decode() == awkward + "and b\n" * 20_000
