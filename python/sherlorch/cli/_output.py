"""Where the result of a command goes: stdout or --output; and the files that are kept of a report."""

from __future__ import annotations

import sys
from pathlib import Path

from sherlorch._report import DiagnosisReport, write_text
from sherlorch._terminal import report_text, say
from sherlorch.cli._files import UnusableOutput


def write_result(report: DiagnosisReport, *, as_json: bool, output: str | None, force: bool) -> None:
    """Print the diagnosis on stdout, or write it to `output`.

    Raises:
        OSError: It can't be written; the message has the path and the reason.
        ValueError: The program has closed stdout.
    """
    if output is not None:
        text = report.to_json() if as_json else report.to_text()
        say(f"Wrote {write_text(output, text + chr(10), overwrite=force)}")
        return
    # The program may have replaced sys.stdout; what it has written so far comes first.
    if sys.stdout is not None:
        sys.stdout.flush()
    stream = sys.__stdout__ or sys.stdout
    print(report.to_json() if as_json else report_text(report, stream), file=stream, flush=True)


def keep_report(report: DiagnosisReport, path: Path, *, force: bool) -> None:
    """Write JSON and page. Trouble is said and goes no further: the diagnosis itself is out already."""
    for target, write in ((path, report.to_json), (path.with_suffix(".html"), report.to_html)):
        try:
            write(target, overwrite=force)
        except Exception as error:
            say(f"could not write {target}: {error}", style="red")
        else:
            say(f"Wrote {target}")


def read_report(path: str) -> DiagnosisReport:
    """Read a report that was kept as JSON.

    Raises:
        UnusableOutput: There is no such file, or it is no report, a damaged or a newer one.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise UnusableOutput(f"there is no file {path!r}; check the name") from None
    except OSError as error:
        raise UnusableOutput(f"can't read {path}: {error.strerror}") from None
    try:
        return DiagnosisReport.from_json(text)
    except ValueError as error:
        raise UnusableOutput(f"{path}: {error}") from None
