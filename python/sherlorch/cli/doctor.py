"""`sherlorch doctor`: what is installed, how it was built, what is supported here, and whether it works."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import sherlorch
from sherlorch import _compat

_SELF_TEST_FILE = "self-test.py"


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, what was seen, and whether that is fine."""

    name: str
    value: str
    ok: bool = True


def _versions() -> list[Finding]:
    info = _compat._build_info()
    trouble = _compat.problem()
    built = info.get("torch_version", "never built")
    return [
        Finding("sherlorch", sherlorch.__version__),
        Finding("python", f"{platform.python_version()} ({sys.executable})"),
        Finding("platform", f"{platform.system()} {platform.machine()}"),
        Finding("torch here", _compat.installed_torch_version() or "none"),
        Finding("built against torch", built if trouble is None else trouble, trouble is None),
        Finding("built with", f"{info.get('compiler', 'unknown')} {info.get('build_type', '')}".strip()),
        Finding("C++ API", f"CMAKE_PREFIX_PATH={sherlorch.cmake_prefix_path}"),
    ]


def _try(name: str, test: Callable[[], str]) -> Finding:
    try:
        return Finding(name, test())
    except Exception as error:
        return Finding(name, f"{type(error).__name__}: {error}", False)


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise RuntimeError(what)


def _run(source: str) -> dict[str, Any]:
    """Run a line of a made-up user's program: frames of this package are nobody's own code."""
    import torch

    names: dict[str, Any] = {"__name__": "__main__", "torch": torch}
    exec(compile(source, _SELF_TEST_FILE, "exec"), names)
    return names


def _forward() -> str:
    with sherlorch.trace() as tracker:
        names = _run("total = torch.zeros(3).log().sum()")
    culprit = tracker.diagnose(names["total"]).culprits[0]
    _expect(culprit.op_name == "log", f"blamed {culprit.op_name} for log(0.0)")
    _expect(culprit.location == f"{_SELF_TEST_FILE}:1", f"log(0.0) ran at line 1, not at {culprit.location}")
    return culprit.headline


def _backward() -> str:
    with sherlorch.trace() as tracker:
        names = _run("x = torch.zeros(3, requires_grad=True); (x.sqrt() * 0).sum().backward()")
    culprit = tracker.diagnose(names["x"].grad).culprits[0]
    _expect(culprit.phase == "backward", f"blamed the {culprit.phase} for the gradient of sqrt(0.0)")
    return culprit.headline


def _trap() -> str:
    try:
        with sherlorch.trap():
            _run("torch.zeros(1).log()")
    except sherlorch.NonFiniteError as error:
        return f"raised: {error}"
    raise RuntimeError("log(0.0) went through the trap")


def _dtypes() -> str:
    import torch

    names = []
    tracker = sherlorch.ProvenanceTracker()
    for name in (
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ):
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex32 is "experimental"
            tensor = torch.tensor([1.0, float("nan")]).to(dtype)
        _expect(tracker.has_issue(tensor), f"NaN in {name} was not seen")
        names.append(name)
    return ", ".join(names)


def _devices() -> str:
    import torch

    seen = ["cpu"]
    if torch.cuda.is_available():
        seen.append(f"cuda ({torch.cuda.get_device_name()})")
    return ", ".join(seen)


def findings() -> list[Finding]:
    """Everything that doctor looks at."""
    found = _versions()
    if _compat.problem() is None:
        found += [
            _try("devices", _devices),
            _try("forward", _forward),
            _try("backward", _backward),
            _try("trap", _trap),
            _try("dtypes", _dtypes),
        ]
    return found


def main(args: argparse.Namespace) -> int:
    """Returns the exit status: 0 if all is well, 1 if not."""
    found = findings()
    if args.json:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        _print_table(found)
    return 0 if all(finding.ok for finding in found) else 1


def _print_table(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in found:
        mark = "ok" if finding.ok else "FAULT"
        style = "green" if finding.ok else "bold red"
        table.add_row(finding.name, f"[{style}]{mark}[/]", finding.value.replace("[", r"\["))
    Console(file=sys.stdout, highlight=False).print(table)
