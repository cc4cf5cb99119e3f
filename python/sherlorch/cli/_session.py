"""One run of a program under the tracer: what is found in it, and what is done about it."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from sherlorch import _native
from sherlorch._errors import UntrackedTensorError
from sherlorch._report import DiagnosisReport
from sherlorch._suppress import Suppressions
from sherlorch._targets import finding_in_traceback, first_finding
from sherlorch._terminal import say
from sherlorch._tracker import ProvenanceTracker
from sherlorch._trap import allowed_here, at_fault
from sherlorch.cli._files import free_name, seen_from
from sherlorch.cli._output import keep_report, write_result
from sherlorch.cli._parser import usage_error
from sherlorch.cli._program import NoProgram, Program
from sherlorch.cli._sinks import Sinks, leaf_name

EXIT_FOUND = 1
EXIT_PROGRAM_FAILED = 3


class StopRun(BaseException):
    """Ends the program at a finding. Not an Exception, so that `except Exception` in the program does not keep it."""


class Session:
    """One run: what was found in it, and what is done about it."""

    def __init__(self, args: argparse.Namespace, program: Program) -> None:
        self._args = args
        self._program = program
        self._suppressions = Suppressions(args.ignore)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._folder = os.getcwd()
        self._debugged: set[str | None] = set()
        self.tracker = ProvenanceTracker(
            compile=args.compile,
            ignore=args.ignore,
            on_culprit=self._debug_at_op if args.pdb else "record",
        )
        self.found = False
        self.stopping = False
        self.later = 0

    def is_bad(self, tensor: torch.Tensor) -> bool:
        """True if this value is to be looked at: it is non-finite, and here (not in a forked worker)."""
        if os.getpid() != self._pid:
            return False
        if self.stopping:
            raise StopRun  # the program has caught the first one
        try:
            return _native.has_issue(tensor)
        except Exception:
            return False  # a tensor that can't be read is a blind spot, not a finding

    def check(self, what: str, tensor: torch.Tensor, parameter: torch.Tensor | None) -> None:
        """A value at a sink is non-finite: find out why, say so, and stop or go on."""
        if self.found and not self._args.pdb:
            self.later += 1
            return
        if parameter is not None:
            what = what.format(leaf_name(parameter))
        try:
            report = self.tracker.diagnose(tensor)
        except UntrackedTensorError as error:
            if not allowed_here(inf=True, nan=True):
                self._say_untracked(what, error)
                self._stop()
            return
        except Exception:
            logging.getLogger("sherlorch").exception("a diagnosis failed")
            return
        if at_fault(report, self._suppressions):
            self.report(what, report)
            if self._args.pdb:
                self._debug(report, _calling_frame())
            self._stop()

    def report(self, what: str, report: DiagnosisReport) -> None:
        """Give out the first finding: the result, the files, and what it is about."""
        with self._lock:
            if self.found:
                self.later += 1
                return
            self.found = True
        say(f"{what} is non-finite", style="red")
        args = self._args
        output = seen_from(self._folder, args.output) if args.output else None
        try:
            write_result(report, as_json=args.json, output=output, force=args.force)
        except (OSError, ValueError) as error:
            say(f"could not write the diagnosis: {error}", style="red")
        if not args.no_report:
            stem = f"sherlorch-{self._program.name}"
            path = Path(seen_from(self._folder, args.report)) if args.report else free_name(self._folder, stem)
            keep_report(report, path, force=args.force)

    def _say_untracked(self, what: str, error: UntrackedTensorError) -> None:
        if not self.found:
            say(f"{what} is non-finite, and the trace can't tell why: {error}", style="red")
        self.found = True

    def _stop(self) -> None:
        if self._args.keep_going:
            return
        self.stopping = True
        if threading.current_thread() is not threading.main_thread():
            import _thread

            _thread.interrupt_main()
        raise StopRun

    def _debug_at_op(self, report: DiagnosisReport) -> None:
        """The trap's callback under --pdb, right after the op."""
        culprit = at_fault(report, self._suppressions)[-1]
        if culprit.location in self._debugged:
            return
        self._debugged.add(culprit.location)
        self.report(f"the output of {culprit.op_name}", report)
        frame = _calling_frame()
        guilty = frame
        while guilty is not None and f"{guilty.f_code.co_filename}:{guilty.f_lineno}" != culprit.location:
            guilty = guilty.f_back
        self._debug(report, guilty or frame)

    def _debug(self, report: DiagnosisReport, frame: FrameType | None) -> None:
        import pdb

        # The prompt belongs on the terminal, also when the program's stdout goes elsewhere.
        debugger = pdb.Pdb(stdout=None if sys.stdout.isatty() else sys.__stderr__)
        debugger.reset()
        say(f"{report.verdict()}; c goes on, q ends the program", style="red")
        debugger.interaction(frame, None)
        if debugger.quitting:
            self.stopping = True
            raise StopRun

    def look_at_end(self, traceback: TracebackType | None, *, gradients: bool) -> None:
        """At the program's end, look at what it leaves: the frames of its exception, or the names of __main__."""
        if self.found:
            return
        found = finding_in_traceback(self.tracker, traceback, gradients=gradients, accept=self._accept)
        main = self._program.main
        if found is None and traceback is None and main is not None:
            found = first_finding(self.tracker, vars(main), gradients=gradients, accept=self._accept)
        if found is not None:
            self.report(*found)

    def look_at_thread(self, args: threading.ExceptHookArgs) -> None:
        """A thread of the program has ended by an exception: look at its frames, and let the program go on."""
        if os.getpid() == self._pid and not self.stopping:
            self.look_at_end(args.exc_traceback, gradients=True)

    def _accept(self, report: DiagnosisReport) -> bool:
        return bool(at_fault(report, self._suppressions))


def _calling_frame() -> FrameType | None:
    """The innermost frame that is neither ours nor torch's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top not in ("sherlorch", "torch"):
            return frame
        frame = frame.f_back
    return None


def _own_frames_off(error: BaseException) -> TracebackType | None:
    """The traceback as the program's own, without the frames of this command before it."""
    traceback = error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if not name.startswith("sherlorch.") and name != "importlib._bootstrap":
            return traceback
        traceback = traceback.tb_next
    return None


def run(args: argparse.Namespace, program: Program) -> int:
    """Run the program. Returns our exit status, or raises what the program's own end asks for."""
    session = Session(args, program)
    ending: BaseException | None = None
    with session.tracker:
        sinks = Sinks(session.check, session.is_bad)
        try:
            with sinks, _ends_of_threads(session):
                program.run()
        except NoProgram as error:
            return usage_error("run", str(error))
        except BaseException as error:
            ending = error
        traceback = _own_frames_off(ending) if ending is not None else None
        if not session.stopping:
            session.look_at_end(None if isinstance(ending, SystemExit) else traceback, gradients=not sinks.scaled)
    return _status(session, ending, traceback, program)


@contextlib.contextmanager
def _ends_of_threads(session: Session) -> Iterator[None]:
    """Inside, `session.look_at_thread` is told of each thread that ends by an exception; then Python's hook is."""
    original = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if issubclass(args.exc_type, StopRun):
            return  # it has done its work
        try:
            session.look_at_thread(args)
        finally:
            original(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        if threading.excepthook is hook:
            threading.excepthook = original


def _status(
    session: Session,
    ending: BaseException | None,
    traceback: TracebackType | None,
    program: Program,
) -> int:
    if session.stopping:
        say(f"stopped {program.label} there; --keep-going runs it to its end")
        return EXIT_FOUND
    if session.later:
        say(f"after that, {session.later} more values at sinks were non-finite")
    if ending is not None and not isinstance(ending, SystemExit):
        # As the interpreter would show it, by the program's own excepthook if it has one.
        sys.excepthook(type(ending), ending.with_traceback(traceback), traceback)
    if session.found:
        return EXIT_FOUND
    if isinstance(ending, SystemExit):
        raise ending.with_traceback(None)
    if isinstance(ending, KeyboardInterrupt):
        _end_by_interrupt(ending)
    if ending is not None:
        say(f"{program.label} failed by itself; nothing non-finite was found", style="yellow")
        return EXIT_PROGRAM_FAILED
    return 0


def _end_by_interrupt(error: KeyboardInterrupt) -> None:
    """End as an interrupted Python does, by the signal; the traceback is out already."""

    def quiet(kind: type[BaseException], value: BaseException, traceback: Any) -> None:
        pass

    sys.excepthook = quiet
    raise error.with_traceback(None)
