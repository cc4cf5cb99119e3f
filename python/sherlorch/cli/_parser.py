"""The options of all subcommands. Imports neither torch nor the native module, so that --help is quick."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import sherlorch
from sherlorch import _compat


@dataclass(frozen=True)
class ProgramWords:
    """What `sherlorch run` is to run: a script's path or a module's name, and its arguments."""

    target: str
    is_module: bool
    args: tuple[str, ...]


_RUN_EXIT_STATUS = """\
exit status:
  0  nothing non-finite that anyone is to blame for
  1  found; the diagnosis is on stdout or in --output
  2  wrong use
  3  the program failed by itself (an exception that nobody caught)
A program that ends with a status of its own, sys.exit(7), and has no such value ends with that
status.
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of `sherlorch`, with its subparsers."""
    parser = argparse.ArgumentParser(
        prog="sherlorch",
        description="Names the operation that first put a NaN or an infinity into a PyTorch program.",
        allow_abbrev=False,
    )
    built = _compat.built_torch_version() or "never built"
    parser.add_argument("--version", action="version", version=f"sherlorch {sherlorch.__version__} (torch {built})")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_run(commands)
    _add_show(commands)
    _add_html(commands)
    doctor = commands.add_parser(
        "doctor", help="say what is installed, how it was built, and whether it works", allow_abbrev=False
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run an unchanged program and stop where a loss, gradient or parameter turns non-finite",
        usage="sherlorch run [options] (script.py | -m module) [args ...]",
        description="Runs a program under the tracer and watches the tensors on which backward is called, gradients, "
        "parameters that an optimizer writes, and values passed to .item().",
        epilog=_RUN_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    after = run.add_mutually_exclusive_group()
    after.add_argument("--keep-going", action="store_true", help="report the first finding and let the program go on")
    after.add_argument(
        "--pdb", action="store_true", help="open the debugger at the op that made the value, while it is on the stack"
    )
    run.add_argument("--json", action="store_true", help="print the diagnosis as JSON, not as text")
    run.add_argument("--output", metavar="FILE", help="write the diagnosis to FILE, not to stdout")
    run.add_argument(
        "--report",
        metavar="FILE.json",
        help="where to keep the report as JSON; the page goes beside it (default: sherlorch-PROGRAM.json, numbered)",
    )
    run.add_argument("--no-report", action="store_true", help="keep neither JSON nor page")
    run.add_argument("--force", action="store_true", help="overwrite --output and --report")
    run.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="WHAT",
        help="let pass: an operator (aten::log), module:PATTERN or file:PATTERN; may be given several times",
    )
    run.add_argument(
        "--compile",
        choices=("eager", "trace_opaque"),
        default="eager",
        help="what torch.compile'd functions do: run eagerly and be seen (default), or stay as they are",
    )


def _add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    show = commands.add_parser("show", help="print a report that was kept as JSON", allow_abbrev=False)
    show.add_argument("file", metavar="FILE.json")
    show.add_argument("--json", action="store_true", help="print it as JSON")
    show.add_argument("--output", metavar="FILE", help="write to FILE, not to stdout")
    show.add_argument("--force", action="store_true", help="overwrite --output")


def _add_html(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    html = commands.add_parser("html", help="make a page of a report that was kept as JSON", allow_abbrev=False)
    html.add_argument("file", metavar="FILE.json")
    html.add_argument("--output", metavar="FILE", help="the page (default: FILE.html beside it)")
    html.add_argument("--force", action="store_true", help="overwrite the page")


def _options_with_value(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions if action.nargs != 0 for option in action.option_strings}


def split_run(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], ProgramWords | None]:
    """Cut `run [options] script.py [args]` before the script: what comes after it is the program's own.

    Returns:
        The words for the parser, and the program (None if there is none, or the command is another
        one).
    """
    if not words or words[0] != "run":
        return list(words), None
    run: argparse.ArgumentParser = next(
        action.choices["run"] for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    with_value = _options_with_value(run)
    at = 1
    while at < len(words):
        word = words[at]
        if word == "-m" or (word.startswith("-m") and len(word) > 2):
            name = word[2:] if len(word) > 2 else "".join(words[at + 1 : at + 2])
            rest = words[at + (1 if len(word) > 2 else 2) :]
            if not name:
                run.error("-m needs the name of a module: sherlorch run -m package.module [args ...]")
            return list(words[:at]), ProgramWords(name, True, tuple(rest))
        if word == "--" or not word.startswith("-") or word == "-":
            first = at + 1 if word == "--" else at
            if first >= len(words):
                return list(words[:at]), None
            return list(words[:at]), ProgramWords(words[first], False, tuple(words[first + 1 :]))
        at += 2 if word in with_value else 1
    return list(words), None


def usage_error(command: str, text: str) -> int:
    """Say what is wrong with the words of a command, as argparse does. Returns the exit status."""
    print(f"sherlorch {command}: error: {text}", file=sys.stderr)
    return 2
