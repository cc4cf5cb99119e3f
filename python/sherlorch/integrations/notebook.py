"""Notebooks: `%load_ext sherlorch`, then `%%sherlorch` on top of a cell.

The cell runs as ever, under the tracer. If its value, a tensor that it leaves in the notebook, or
(after an exception) a local variable is non-finite and somebody is to blame, the diagnosis is shown
below the cell. Line numbers are the cell's.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from sherlorch._cells import cell_labels
from sherlorch._targets import finding_in_traceback, first_finding
from sherlorch._terminal import report_text
from sherlorch._tracker import ProvenanceTracker

if TYPE_CHECKING:
    from sherlorch._report import DiagnosisReport


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="%%sherlorch", add_help=False, allow_abbrev=False)
    parser.add_argument("--watch", action="append", default=[], metavar="MODEL")
    parser.add_argument("--target", metavar="NAME")
    return parser


def _usage_error(text: str) -> Exception:
    # IPython's own exception for wrong use of a magic, which it shows as one line.
    error: Exception = import_module("IPython.core.error").UsageError(text)
    return error


def _options(shell: Any, line: str) -> argparse.Namespace:
    try:
        args, extra = _parser().parse_known_args(shlex.split(line))
    except (SystemExit, ValueError):
        extra, args = [line], argparse.Namespace(watch=[], target=None)
    if extra:
        raise _usage_error(f"%%sherlorch does not know {' '.join(extra)!r}; use --watch MODEL and --target NAME")
    for name in args.watch:
        if not isinstance(shell.user_ns.get(name), torch.nn.Module):
            raise _usage_error(f"--watch {name}: there is no nn.Module of that name in the notebook yet")
    return args


def _new_values(shell: Any, before: dict[str, int], result: object) -> dict[str, Any]:
    changed = {
        name: value
        for name, value in shell.user_ns.items()
        if not name.startswith("_") and before.get(name) != id(value)
    }
    # Modules and leaf tensors keep their identity while their gradients change.
    kept = {
        name: value
        for name, value in shell.user_ns.items()
        if not name.startswith("_") and isinstance(value, (torch.nn.Module, torch.Tensor))
    }
    return {**kept, **changed, "the cell's value": result}


def run_cell(shell: Any, line: str, cell: str) -> DiagnosisReport | None:
    """What `%%sherlorch` does: run the cell traced, show the diagnosis if there is one, and return it.

    Raises:
        UsageError: The line has an unknown option, or names something that is not there (IPython's
            own exception, which it shows as one line).
    """
    args = _options(shell, line)
    before = {name: id(value) for name, value in shell.user_ns.items()}
    with ProvenanceTracker() as tracker:
        for name in args.watch:
            tracker.watch(shell.user_ns[name], name)
        # In place of the magic's own line, so that line numbers are those of the cell.
        outcome = shell.run_cell("# %%sherlorch\n" + cell, store_history=False)
        error = outcome.error_in_exec or outcome.error_before_exec
        found = None
        if args.target is not None:
            found = first_finding(tracker, {args.target: _value(shell, args.target)})
        elif error is not None:
            found = finding_in_traceback(tracker, error.__traceback__)
        else:
            found = first_finding(tracker, _new_values(shell, before, outcome.result))
    if found is None:
        return None
    name, report = found
    _show(shell, name, report)
    return report


def _value(shell: Any, name: str) -> torch.Tensor:
    value = shell.user_ns.get(name)
    if not isinstance(value, torch.Tensor):
        raise _usage_error(f"--target {name}: the cell leaves no tensor of that name")
    return value


def _show(shell: Any, name: str, report: DiagnosisReport) -> None:
    verdict = report.verdict()
    for file, label in cell_labels(report._files()).items():
        verdict = verdict.replace(f"{file}:", f"{label}, line ")
    print(f"sherlorch: {name} is non-finite: {verdict}")
    if getattr(shell, "kernel", None) is not None:  # a notebook, not a terminal
        import_module("IPython.display").display(report)
    else:
        print(report_text(report, sys.stdout))


def load_ipython_extension(ipython: Any) -> None:
    """Register `%%sherlorch`."""

    def sherlorch(line: str, cell: str) -> None:
        run_cell(ipython, line, cell)

    ipython.register_magic_function(sherlorch, magic_kind="cell", magic_name="sherlorch")
