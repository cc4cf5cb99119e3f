"""`sherlorch run`: an unchanged program under the tracer, stopped where a value that matters turns non-finite."""

from __future__ import annotations

import argparse

from sherlorch._suppress import Suppressions
from sherlorch.cli._files import UnusableOutput, check_writable
from sherlorch.cli._parser import ProgramWords, usage_error
from sherlorch.cli._program import NoProgram, Program


def main(args: argparse.Namespace, words: ProgramWords | None) -> int:
    """Run the program. Returns our exit status, or raises what the program's own end asks for."""
    if words is None:
        return usage_error("run", "name a script or -m MODULE: sherlorch run [options] script.py [args ...]")
    try:
        program = Program(words)
        if args.output is not None:
            check_writable(args.output, force=args.force, option="--output")
        if args.report is not None and not args.no_report:
            if not args.report.endswith(".json"):
                raise UnusableOutput(f"--report {args.report} does not end in .json; give it that ending")
            check_writable(args.report, force=args.force, option="--report")
        Suppressions(args.ignore)
    except (NoProgram, UnusableOutput, ValueError) as error:
        return usage_error("run", str(error))

    from sherlorch.cli._session import run  # torch and the native module, now that there is something to run

    return run(args, program)
