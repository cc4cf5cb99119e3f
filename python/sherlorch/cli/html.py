"""`sherlorch html FILE.json`: make a page of a report that was kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from sherlorch._terminal import say
from sherlorch.cli._files import UnusableOutput, check_writable
from sherlorch.cli._output import read_report
from sherlorch.cli._parser import usage_error


def main(args: argparse.Namespace) -> int:
    """Returns the exit status."""
    try:
        report = read_report(args.file)
        output = args.output or str(Path(args.file).with_suffix(".html"))
        check_writable(output, force=args.force, option="--output")
        report.to_html(output, overwrite=args.force)
    except (UnusableOutput, OSError) as error:
        return usage_error("html", str(error))
    say(f"Wrote {output}")
    return 0
