#!/usr/bin/env python3
"""Fails where an #include points against the layers, or reaches torch or Python from where they do not belong.

    python > bindings > adapter > core > public headers,  and inside core:  report > diagnose > ... > base

Usage: check_layers.py [root]. Prints one line a violation: file:line: what and why.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Folder -> folders and single headers of this project that its files may include (its own always).
CORE = {
    "core/base": {"include/sherlorch/types.h"},
    "core/scan": {"core/base"},
    "core/graph": {"core/base"},
    "core/operators": {"core/base", "core/graph"},
    "core/record": {"core/base", "core/graph", "core/operators", "core/scan"},
    "core/diagnose": {
        "core/base",
        "core/graph",
        "core/operators",
        "core/scan",
        "include/sherlorch/diagnosis.h",
        "include/sherlorch/errors.h",
    },
    "core/report": {
        "core/base",
        "core/graph",
        "core/diagnose",
        "include/sherlorch/diagnosis.h",
        "include/sherlorch/errors.h",
        "include/sherlorch/report.h",
    },
}
ALLOWED = {
    **CORE,
    # Public headers stand on their own: they are installed without the rest.
    "include/sherlorch": set[str](),
    "adapter": {"include/sherlorch", *CORE},
    "bindings": {"include/sherlorch", "adapter", *CORE},
    "bench/core": set(CORE),
    "tests/page": {"include/sherlorch", *CORE},
    "tests/counts": set(CORE),
    "tests/adapter": {"include/sherlorch", "adapter", *CORE},
}

TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
PYTHON = re.compile(
    r"(Python\.h|pybind11/|frameobject\.h|internal/pycore_|torch/extension\.h|torch/python\.h|torch/csrc/utils/pybind\.h)"
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".hpp", ".cpp", ".cc", ".c"}


def folder_of(path: str) -> str | None:
    """The layer that a path relative to the root belongs to."""
    return next((name for name in ALLOWED if path.startswith(name + "/")), None)


def target_of(included: str, own: str, root: Path) -> str | None:
    """The layer that an include reaches, None where it is not a file of this project."""
    if included.startswith("sherlorch/"):
        return "include/sherlorch"
    if (root / own / included).exists():
        return own
    return folder_of(included)


def violations(root: Path) -> Iterator[str]:
    """Yields "file:line: reason" for every include that is not allowed."""
    for folder in ("core", "include", "adapter", "bindings", "bench/core", "tests/adapter", "tests/page"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            name = path.relative_to(root).as_posix()
            layer = folder_of(name)
            if layer is None:
                yield f"{name}:1: lies in no layer that scripts/check_layers.py knows"
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                reason = match and complaint(match[2], name, layer, root)
                if reason:
                    yield f"{name}:{number}: {reason}"


def complaint(included: str, name: str, layer: str, root: Path) -> str | None:
    """Why this file may not include that, None where it may."""
    if PYTHON.match(included) and layer != "bindings":
        return f"{layer} must not include Python's headers ({included}): bindings/ alone does"
    if TORCH.match(included):
        if layer in {*CORE, "bench/core", "tests/page"}:
            return f"{layer} must not include torch's headers ({included}): adapter/ does"
        if layer == "include/sherlorch" and not name.endswith("/tracker.h"):
            return f"only tracker.h of the public headers may include torch's ({included})"
    target = target_of(included, layer, root)
    if target is not None and target != layer and not {target, f"include/{included}"} & ALLOWED[layer]:
        return f"{layer} must not include {target} ({included}): the layers point the other way"
    return None


def main() -> int:
    """Returns 1 where a violation was printed."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = list(violations(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
