"""How text reaches a terminal: coloured where that is one, plain where not (or where NO_COLOR is set)."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from sherlorch._report import DiagnosisReport


def console(stream: TextIO) -> Console:
    """A rich console on this stream; rich itself heeds FORCE_COLOR, TERM and COLUMNS."""
    from rich.console import Console

    # Of NO_COLOR, rich alone takes the colours off and leaves bold and dim.
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, highlight=False, markup=False, soft_wrap=True, emoji=False, color_system=system)


def report_text(report: DiagnosisReport, stream: TextIO) -> str:
    """The report as this stream can show it."""
    shown_on = console(stream)
    color = shown_on.color_system is not None and not shown_on.no_color
    return report.to_text(color=color, width=max(60, min(shown_on.width, 120)))


def say(text: str, *, style: str | None = None) -> None:
    """One line about what we do, on stderr, begun with our name."""
    # Looked up now: the program may have replaced it, or closed it. Then there is nobody to tell.
    stream = sys.__stderr__ or sys.stderr
    if stream is None or stream.closed:
        return
    out = console(stream)
    with contextlib.suppress(OSError):
        out.print("sherlorch:", style="bold" if style is None else f"bold {style}", end=" ")
        out.print(text)
