"""Where the result of a command goes: stdout or --output; and the files that are kept of a report."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sherlorch._report import DiagnosisReport, write_text
from sherlorch._terminal import report_text, say


class UnusableOutput(Exception):
    """A file that was asked for can't be written; the message is one sentence for the user."""


def check_writable(path: str, *, force: bool, option: str) -> None:
    """Find out before the work whether a file can be written after it.

    Raises:
        UnusableOutput: It exists and may not be overwritten, or its folder is missing or closed.
    """
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise UnusableOutput(f"{option} {path} is a folder; name a file")
    if target.is_file() and not force:
        raise UnusableOutput(f"{option} {path} exists already; pass --force to overwrite it")
    if not folder.is_dir():
        raise UnusableOutput(f"{option} {path} lies in a folder that does not exist; make {folder}")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise UnusableOutput(f"{option} {path} can't be written: permission denied; choose another")


def write_result(report: DiagnosisReport, *, as_json: bool, output: str | None, force: bool) -> None:
    """Print the diagnosis on stdout, or write it to `output`.

    Raises:
        OSError: It can't be written; the message has the path and the reason.
    """
    if output is not None:
        text = report.to_json() if as_json else report.to_text()
        say(f"Wrote {write_text(output, text + chr(10), overwrite=force)}")
        return
    # The program may have replaced sys.stdout; what it has written so far comes first.
    sys.stdout.flush()
    stream = sys.__stdout__ or sys.stdout
    print(report.to_json() if as_json else report_text(report, stream), file=stream, flush=True)


def free_name(stem: str) -> Path:
    """`STEM.json` in the current folder, numbered if that or its page is there already."""
    number = 1
    while True:
        path = Path(f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        if not path.exists() and not path.with_suffix(".html").exists():
            return path
        number += 1


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
