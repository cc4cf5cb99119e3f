"""The command line: `sherlorch run | show | html | doctor`. One file a subcommand."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sherlorch.cli._parser import build_parser, split_run

EXIT_OK = 0
EXIT_FOUND = 1
EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The words after `sherlorch`; None: those of this process.

    Returns:
        The exit status: 0 fine, 1 something non-finite was found (or `doctor` found a fault), 2
            wrong use, 3 the program
        under `run` failed by itself.

    Raises:
        SystemExit: From argparse, for --help, --version and wrong options; and with the program's
            own status, if that ended by itself with another one than 0.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    words, program = split_run(parser, words)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    if args.command == "doctor":
        from sherlorch.cli.doctor import main as doctor_main

        return doctor_main(args)

    from sherlorch import _compat

    trouble = _compat.problem()
    if trouble is not None:
        print(f"sherlorch: error: {trouble}", file=sys.stderr)
        return EXIT_USAGE
    if args.command == "run":
        from sherlorch.cli.run import main as run_main

        return run_main(args, program)
    if args.command == "show":
        from sherlorch.cli.show import main as show_main

        return show_main(args)
    from sherlorch.cli.html import main as html_main

    return html_main(args)
