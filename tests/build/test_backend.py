"""What an installer shows where something that the build needs is missing: one sentence, no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment without torch."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture
def with_torch(tmp_path: Path) -> Path:
    """The folder of site-packages of an environment; put a torch there. Its python is at bin/python."""
    venv.create(tmp_path, with_pip=False)
    return tmp_path / "lib" / "python3.11" / "site-packages"


def plant(site_packages: Path, text: str) -> str:
    (site_packages / "torch").mkdir()
    (site_packages / "torch" / "__init__.py").write_text(text)
    return str(site_packages.parents[2] / "bin" / "python")


def ask_backend(**environment: str) -> tuple[int, str]:
    """Exit status and stderr of the first hook that an installer calls."""
    code = "import sherlorch_build; sherlorch_build.get_requires_for_build_wheel({})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "build_backend"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stderr


def assert_one_sentence(stderr: str) -> str:
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("sherlorch "), stderr
    assert lines[0].endswith("."), stderr
    return lines[0]


def test_torch_in_range_is_accepted() -> None:
    assert ask_backend() == (0, "")


def test_no_torch(bare: Path) -> None:
    code, stderr = ask_backend(SHERLORCH_PYTHON=str(bare))

    assert code == 1
    sentence = assert_one_sentence(stderr)
    assert f"{bare} has none" in sentence
    assert f"run {bare} -m pip install torch==2.13.0" in sentence


def test_folder_that_an_uninstalled_torch_left_behind_is_no_torch(with_torch: Path) -> None:
    (with_torch / "torch" / "lib").mkdir(parents=True)
    python = str(with_torch.parents[2] / "bin" / "python")

    code, stderr = ask_backend(SHERLORCH_PYTHON=python)

    assert code == 1
    assert f"{python} has none" in assert_one_sentence(stderr)


@pytest.mark.parametrize("version", ["2.12.1+cu128", "2.14.0", "3.0.0", "1.13.1"])
def test_torch_out_of_range(with_torch: Path, version: str) -> None:
    python = plant(with_torch, f"__version__ = {version!r}")

    code, stderr = ask_backend(SHERLORCH_PYTHON=python)

    assert code == 1
    sentence = assert_one_sentence(stderr)
    assert "needs torch >=2.13,<2.14" in sentence
    assert f"{python} has torch {version}" in sentence
    assert f"run {python} -m pip install torch==2.13.0" in sentence


@pytest.mark.parametrize("version", ["2.13.0", "2.13.1+cu130"])
def test_every_patch_release_in_range_is_accepted(with_torch: Path, version: str) -> None:
    python = plant(with_torch, f"__version__ = {version!r}")

    assert ask_backend(SHERLORCH_PYTHON=python) == (0, "")


def test_torch_that_does_not_import(with_torch: Path) -> None:
    python = plant(with_torch, "raise ImportError('libc10.so: no such file')")

    code, stderr = ask_backend(SHERLORCH_PYTHON=python)

    assert code == 1
    assert "does not import (ImportError: libc10.so: no such file)" in assert_one_sentence(stderr)


def test_interpreter_that_does_not_exist() -> None:
    code, stderr = ask_backend(SHERLORCH_PYTHON="/nowhere/python")

    assert code == 1
    assert "cannot run /nowhere/python" in assert_one_sentence(stderr)


def test_no_compiler(tmp_path: Path) -> None:
    code, stderr = ask_backend(PATH=str(tmp_path), CXX="")

    assert code == 1
    sentence = assert_one_sentence(stderr)
    assert "c++, g++, clang++ not found" in sentence
    assert "apt-get install g++" in sentence


def test_named_compiler_that_does_not_exist() -> None:
    code, stderr = ask_backend(CXX="g++-0 -O2")

    assert code == 1
    assert "g++-0 not found" in assert_one_sentence(stderr)


@pytest.mark.parametrize(
    ("name", "version", "shown"),
    [("cpython", "(3, 12, 4)", "cpython 3.12.4"), ("pypy", "(3, 11, 9)", "pypy 3.11.9")],
)
def test_unsupported_python(name: str, version: str, shown: str) -> None:
    code = (
        "import sys, sherlorch_build\n"
        f"sys.version_info = {version}\n"
        f"sys.implementation.name = {name!r}\n"
        "sherlorch_build.get_requires_for_build_wheel({})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "build_backend")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 1
    sentence = assert_one_sentence(result.stderr)
    assert shown in sentence
    assert "CPython 3.11" in sentence


def test_pip_shows_the_sentence_and_no_traceback(bare: Path, tmp_path: Path) -> None:
    # Without isolation, so that nothing is downloaded: the backend's own requirements are lent, torch is not.
    import packaging
    import pathspec
    import scikit_build_core

    site_packages = bare.parents[1] / "lib" / "python3.11" / "site-packages"
    for module in (packaging, pathspec, scikit_build_core):
        folder = Path(str(module.__file__)).parent
        link = site_packages / folder.name
        if not link.exists():
            link.symlink_to(folder)

    command = [sys.executable, "-m", "pip", "--python", str(bare), "install", "--no-build-isolation", "--no-deps", "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    output = result.stdout + result.stderr
    assert result.returncode != 0
    assert "Traceback" not in output
    assert len(re.findall(r"sherlorch is built against the torch .* has none: run .* -m pip install", output)) == 1


def test_installing_never_asks_for_another_torch() -> None:
    # The range that the build accepts and the one that the package requires are one text.
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count('"torch>=') == 1
    assert "torch" not in re.findall(r"^requires = (.*)$", text, re.MULTILINE)[0]
