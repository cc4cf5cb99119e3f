"""The tools that are measured, ours among them: each is a context manager around one pass, or hooks on the model."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType

import sherlorch
import torch
from common import ROOT
from sherlorch import _native
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

OURS = "sherlorch"
FLOOR = "empty callbacks"  # torch's own part: observers like ours with nothing in them
ORIGINAL = "original"
ORIGINAL_LINES = "original, file:line"
ORIGINAL_ALL = "original, every op scanned"
ANOMALY = "detect_anomaly"
DISPATCH = "dispatch mode, isfinite"
HOOKS = "forward hooks, isnan"


@dataclass
class Tool:
    context: Callable[[], AbstractContextManager[object]] | None = None
    hook: Callable[[torch.nn.Module], None] | None = None
    needs_backward: bool = False


class EmptyCallbacks:
    def __enter__(self) -> None:
        _native._empty_callbacks(True)

    def __exit__(self, *_: object) -> None:
        _native._empty_callbacks(False)


def load_original() -> ModuleType | None:
    """sherlorch 0.1.0 as `sherlorch_original`, from a wheel that pip fetches into build/; None without a network."""
    home = ROOT / "build" / "bench" / "original"
    package = home / "sherlorch_original"
    if not package.exists():
        words = ["download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(home), "sherlorch==0.1.0"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        if subprocess.run([*pip, *words], check=False).returncode:
            print("sherlorch 0.1.0 cannot be fetched: the original is left out")
            return None
        with zipfile.ZipFile(home / "sherlorch-0.1.0-py3-none-any.whl") as wheel:
            wheel.extractall(home)
        (home / "sherlorch").rename(package)  # its own imports are relative
    sys.path.insert(0, str(home))
    return importlib.import_module("sherlorch_original")


class FiniteMode(TorchDispatchMode):
    """What people write by hand: look at every output of every op, keep the names of those that are bad."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not torch.isfinite(value).all():
                self.bad.append(str(func))
        return out


def _look_for_nan(module: torch.nn.Module, _inputs: object, output: object) -> None:
    for value in tree_leaves(output):
        if isinstance(value, torch.Tensor) and torch.isnan(value).any():
            raise RuntimeError(f"NaN in the output of {type(module).__name__}")


def hook_all(model: torch.nn.Module) -> None:
    for module in model.modules():
        module.register_forward_hook(_look_for_nan)


def own() -> dict[str, Tool]:
    return {OURS: Tool(sherlorch.trace), FLOOR: Tool(EmptyCallbacks)}


def tools() -> dict[str, Tool]:
    found = own()
    original = load_original()
    if original is not None:
        found[ORIGINAL] = Tool(original.trace)
        found[ORIGINAL_LINES] = Tool(lambda: original.trace(capture_stack=True))
        found[ORIGINAL_ALL] = Tool(lambda: original.trace(fast_shape_ops=False))
    found[ANOMALY] = Tool(torch.autograd.detect_anomaly, needs_backward=True)
    found[DISPATCH] = Tool(FiniteMode)
    found[HOOKS] = Tool(hook=hook_all)
    return found
