"""Build backend: scikit-build-core, told which torch to build against.

An extension is bound to one minor version of torch, and an isolated build does not see the torch of the environment
that is installed into. So this looks for that environment's interpreter and asks it. Whatever is missing is said in
one sentence, before anything is compiled.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from scikit_build_core import build as _skbuild
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, Any] | None

SUPPORTED_PYTHON = (3, 11)

# Run in the environment's interpreter. find_spec first: it tells "no torch" from "a torch that does not import".
_PROBE = """
import importlib.util, json
if importlib.util.find_spec("torch") is None:
    print(json.dumps(None))
else:
    import pathlib, torch
    print(json.dumps({"version": torch.__version__, "dir": str(pathlib.Path(torch.__file__).parent)}))
"""


def _fail(sentence: str) -> None:
    # SystemExit, not an error: installers show its text and no traceback.
    raise SystemExit(f"sherlorch: {sentence}")


def _torch_range() -> tuple[str, str]:
    """Lower (inclusive) and upper (exclusive) bound, from pyproject.toml's own dependency on torch."""
    text = Path("pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'"torch>=([0-9.]+),<([0-9.]+)"', text)
    assert match is not None, "pyproject.toml has no dependency of the form torch>=A,<B"
    return match.group(1), match.group(2)


def _release(version: str) -> tuple[int, ...]:
    """(2, 13, 0) of "2.13.0+cpu"."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _ask(python: str) -> dict[str, str] | None:
    """Version and folder of the torch that this interpreter imports, None if it has none."""
    # -I: without PYTHONPATH, through which pip puts the isolated build's own packages first.
    answer = subprocess.run([python, "-I", "-c", _PROBE], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        _fail(f"the torch of {python} does not import ({last}): reinstall it with {python} -m pip install {_wanted()}")
    found: dict[str, str] | None = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def _wanted() -> str:
    return f"torch=={_torch_range()[0]}.*"


def _pythons() -> list[str]:
    """Interpreters that may be the one installed into, the likeliest first."""
    override = os.environ.get("SHERLORCH_PYTHON")
    if override:
        return [override]
    candidates = [sys.executable]
    # Under pip sys.executable is the target's own interpreter. uv and build run the backend in a throwaway environment
    # instead, and the target is the active one.
    if "pip-build-env" not in os.environ.get("PYTHONPATH", ""):
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            prefix = os.environ.get(variable)
            if prefix and (python := Path(prefix) / "bin" / "python").exists():
                candidates.append(str(python))
    return candidates


def find_torch() -> dict[str, str]:
    """Version and folder of the torch of the environment that is installed into."""
    pythons = _pythons()
    for python in pythons:
        found = _ask(python)
        if found is None:
            continue
        low, high = _torch_range()
        if not _release(low) <= _release(found["version"]) < _release(high):
            _fail(
                f"needs torch >={low},<{high}, but {python} has torch {found['version']}: "
                f"run {python} -m pip install '{_wanted()}' and install sherlorch again"
            )
        return found
    _fail(
        f"is built against the torch of the environment it is installed into, and {pythons[-1]} has none: "
        f"run {pythons[-1]} -m pip install '{_wanted()}' and install sherlorch again"
    )
    raise AssertionError


def _check_python() -> None:
    running = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"
    wanted = ".".join(map(str, SUPPORTED_PYTHON))
    if sys.implementation.name != "cpython" or sys.version_info[:2] != SUPPORTED_PYTHON:
        _fail(
            f"reads the frames of CPython {wanted} natively and supports no other Python, and this is {running}: "
            f"make an environment with python{wanted} -m venv and install sherlorch there"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        _fail(
            f"is compiled on installation, and the headers of {running} are not installed: "
            f"run apt-get install python{wanted}-dev, or your system's equivalent"
        )


def _check_compiler() -> None:
    named = os.environ.get("CXX")
    names = [named.split()[0]] if named and named.split() else ["c++", "g++", "clang++"]
    if not any(shutil.which(name) for name in names):
        _fail(
            f"is compiled on installation and found no C++20 compiler ({', '.join(names)}): "
            "run apt-get install g++ (version 11 or newer), or set CXX"
        )


def _prepare(settings: Settings) -> dict[str, Any]:
    """Checks what the build needs and returns the settings with torch's place added."""
    _check_python()
    torch = find_torch()
    _check_compiler()
    return {
        **(settings or {}),
        "cmake.define.SHERLORCH_TORCH_DIR": torch["dir"],
        "cmake.define.SHERLORCH_TORCH_VERSION": torch["version"],
    }


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return _skbuild.get_requires_for_build_wheel(_prepare(config_settings))


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return _skbuild.get_requires_for_build_editable(_prepare(config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    return _skbuild.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    return _skbuild.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _skbuild.build_wheel(wheel_directory, _prepare(config_settings), metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _skbuild.build_editable(wheel_directory, _prepare(config_settings), metadata_directory)
