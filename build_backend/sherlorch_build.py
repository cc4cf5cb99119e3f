"""Build backend: scikit-build-core, told which torch to build against.

An extension is bound to one minor version of torch, so the torch must be the one of the environment that is installed
into. Whatever is missing is said in one sentence, before anything is downloaded or compiled.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any, NoReturn

from scikit_build_core import build as _inner
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from sherlorch_torch import TorchError, find_torch

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

# bindings/ reads CPython's frames, whose layout changes with every minor version.
SUPPORTED_PYTHON = (3, 11)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """PEP 517 hook."""
    return _inner.get_requires_for_build_wheel(_with_torch(config_settings))


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """PEP 660 hook."""
    return _inner.get_requires_for_build_editable(_with_torch(config_settings))


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """PEP 517 hook."""
    return _inner.build_wheel(wheel_directory, _with_torch(config_settings), metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """PEP 660 hook."""
    return _inner.build_editable(wheel_directory, _with_torch(config_settings), metadata_directory)


def _with_torch(settings: Settings) -> dict[str, Any]:
    """Checks what the build needs and returns the settings with torch's place added."""
    _check_python()
    try:
        torch = find_torch()
    except TorchError as error:
        _fail(str(error))
    _check_compiler()
    return {
        **(settings or {}),
        "cmake.define.SHERLORCH_TORCH_DIR": torch.folder,
        "cmake.define.SHERLORCH_TORCH_VERSION": torch.version,
    }


def _check_python() -> None:
    running = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"
    wanted = ".".join(map(str, SUPPORTED_PYTHON))
    if sys.implementation.name != "cpython" or sys.version_info[:2] != SUPPORTED_PYTHON:
        _fail(
            f"reads the frames of CPython {wanted} natively and supports no other Python, and this is {running}: "
            f"run python{wanted} -m venv .venv and install sherlorch there"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        _fail(
            f"is compiled when it is installed, and the headers of {running} are missing: "
            f"run apt-get install python{wanted}-dev, or what your system has for it"
        )


def _check_compiler() -> None:
    named = os.environ.get("CXX", "").split()
    names = named[:1] or ["c++", "g++", "clang++"]
    if not any(shutil.which(name) for name in names):
        _fail(
            f"is compiled when it is installed, and there is no C++20 compiler ({', '.join(names)} not found): "
            "run apt-get install g++ (11 or newer), or set CXX to one"
        )


def _fail(sentence: str) -> NoReturn:
    # SystemExit, not an error: installers then show the sentence and no traceback.
    raise SystemExit(f"sherlorch {sentence}.")
