"""`sherlorch show FILE.json`: print a report that was kept."""

from __future__ import annotations

import argparse

from sherlorch.cli._files import UnusableOutput, check_writable
from sherlorch.cli._output import read_report, write_result
from sherlorch.cli._parser import usage_error


def main(args: argparse.Namespace) -> int:
    """Returns the exit status."""
    try:
        if args.output is not None:
            check_writable(args.output, force=args.force, option="--output")
        report = read_report(args.file)
        write_result(report, as_json=args.json, output=args.output, force=args.force)
    except (UnusableOutput, OSError) as error:
        return usage_error("show", str(error))
    return 0
