"""Finds the torch of the environment that sherlorch is being installed into.

Three ways to be run, and where the environment is in each:

- without build isolation: this interpreter is the environment's;
- in pip's isolated build: this interpreter is the environment's too, but PYTHONPATH hides its packages, so it is asked
  anew with -I;
- in uv's isolated build: this interpreter belongs to a throwaway environment, and so do VIRTUAL_ENV and PATH. What uv
  itself was started with, /proc still tells.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# find_spec first: it tells "no torch" from "a torch that does not import". A folder that an uninstalled torch left
# behind has a spec without an origin.
_PROBE = """
import importlib.util, json, pathlib
spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    print(json.dumps(None))
else:
    import torch
    print(json.dumps([torch.__version__, str(pathlib.Path(torch.__file__).parent)]))
"""


@dataclass(frozen=True)
class Torch:
    """A torch that can be built against: its version, such as "2.13.0+cpu", and its package folder."""

    version: str
    folder: str


class TorchError(Exception):
    """No torch to build against. Its text is one sentence that says what to run."""


def supported_range() -> tuple[str, str]:
    """Lower (inclusive) and upper (exclusive) bound, from pyproject.toml's own dependency on torch."""
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'"torch>=([0-9.]+),<([0-9.]+)"', text)
    if match is None:
        raise TorchError("finds no dependency of the form torch>=A,<B in its own pyproject.toml")
    return match[1], match[2]


def find_torch() -> Torch:
    """Returns the torch to build against.

    Raises:
        TorchError: The environment is not to be found, has no torch, or has one that is out of range.
    """
    under_uv = "UV_INTERNAL__BUILD_DIR" in os.environ or "uv" in Path(sys.prefix).parts
    pythons = _candidates(under_uv)
    for python in pythons:
        torch = _ask(python)
        if torch is not None:
            _check_range(torch, python)
            return torch
    if under_uv and len(pythons) == 1:
        raise TorchError(
            "is built against the torch of the environment it is installed into, and uv does not say which that is: "
            "activate the environment, or set SHERLORCH_PYTHON to its python, and install sherlorch again"
        )
    raise TorchError(
        f"is built against the torch of the environment it is installed into, and {pythons[-1]} has none: "
        f"run {_install_command(pythons[-1])} and install sherlorch again"
    )


def _candidates(under_uv: bool) -> list[str]:
    """Interpreters that may be the one installed into, in the order to ask them."""
    override = os.environ.get("SHERLORCH_PYTHON")
    if override:
        return [override]
    target = _target_of_uv() if under_uv else None
    return [sys.executable, target] if target else [sys.executable]


def _target_of_uv() -> str | None:
    """The interpreter of the environment that uv, the parent process, installs into: it looks in this order too."""
    process = Path("/proc", str(os.getppid()))
    try:
        words = process.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
        entries = process.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
        folder = process.joinpath("cwd").resolve()
    except OSError:
        return None
    environment = dict(entry.split("=", 1) for entry in entries if "=" in entry)

    if "--system" in words or environment.get("UV_SYSTEM_PYTHON", "").lower() in ("1", "true"):
        return str(getattr(sys, "_base_executable", sys.executable))
    asked = [after for word, after in itertools.pairwise(words) if word in ("-p", "--python")]
    asked += [word.removeprefix("--python=") for word in words if word.startswith("--python=")]
    asked += [environment.get(name, "") for name in ("UV_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")]
    asked += [environment.get("UV_PROJECT_ENVIRONMENT", "")]
    asked += [str(parent / ".venv") for parent in (folder, *folder.parents)]
    for place in asked:
        path = folder / place
        if place and path.is_dir() and (path / "bin" / "python").exists():
            return str(path / "bin" / "python")
        if place and path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def _ask(python: str) -> Torch | None:
    """The torch that this interpreter imports, None if it has none."""
    command = [python, "-I", "-c", _PROBE]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise TorchError(
            f"cannot run {python} ({error.strerror}), which SHERLORCH_PYTHON or the installer named"
        ) from None
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise TorchError(
            f"is built against torch, and the torch of {python} does not import ({reason}): "
            f"run {_install_command(python)} --force-reinstall and install sherlorch again"
        )
    found = json.loads(answer.stdout.strip().splitlines()[-1])
    return None if found is None else Torch(version=found[0], folder=found[1])


def _check_range(torch: Torch, python: str) -> None:
    low, high = supported_range()
    if not _release(low) <= _release(torch.version) < _release(high):
        raise TorchError(
            f"needs torch >={low},<{high}, but {python} has torch {torch.version}: "
            f"run {_install_command(python)} and install sherlorch again"
        )


def _install_command(python: str) -> str:
    wanted = f"torch=={supported_range()[0]}.0"
    if "UV" in os.environ:
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"


def _release(version: str) -> tuple[int, ...]:
    """(2, 13, 0) of "2.13.0+cpu"."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
