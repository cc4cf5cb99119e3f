"""What happens at the op that makes a non-finite value by accident: raise, warn, call the user back, or let it pass."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from types import CodeType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from torch.overrides import TorchFunctionMode

from sherlorch import _native
from sherlorch._errors import NonFiniteError
from sherlorch._nodes import Culprit
from sherlorch._report import DiagnosisReport
from sherlorch._suppress import Suppressions

P = ParamSpec("P")
R = TypeVar("R")

OnCulprit = Literal["record", "raise", "warn"] | Callable[[DiagnosisReport], object]


def check_on_culprit(value: object) -> None:
    """Refuse everything that `on_culprit` can't be.

    Raises:
        ValueError: It is neither one of the three words nor callable.
    """
    if callable(value) or value in ("record", "raise", "warn"):
        return
    raise ValueError(
        f"on_culprit={value!r} is not known; use 'record', 'raise', 'warn', or a function that takes the report"
    )


# What waits for the end of a function that must not be left half done; see `completes`.
late: list[Callable[[], None]] = []
_unbreakable: set[CodeType] = set()


def _inside_unbreakable() -> bool:
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sherlorch."):
        if frame.f_code in _unbreakable:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def completes(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that a trap must not interrupt: what the trap wants to do is done when the function has ended.

    CPython runs a pending call where the next function begins, and after `with trap(): x = a / b`
    that is `__exit__`: an exception there would leave everything that `__exit__` is to undo.
    """
    _unbreakable.add(function.__code__)

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            if late:
                act_late()

    _unbreakable.add(run.__code__)
    return functools.wraps(function)(run)


def act_late() -> None:
    """Do the first thing that a trap wanted to do meanwhile; on the main thread, where traps spring."""
    if late and threading.current_thread() is threading.main_thread():
        first, *_ = late
        late.clear()
        first()


def keeps_traps_waiting(function: Callable[P, R]) -> Callable[P, R]:
    """As `completes`, for a function that calls `act_late` itself, or whose exceptions go nowhere."""
    _unbreakable.add(function.__code__)
    return function


# Which classes are allowed now, a stack a thread; by thread name, because a culprit says the name
# of its thread.
_regions: dict[str, list[tuple[bool, bool]]] = {}
_regions_lock = threading.Lock()


class allow(ContextDecorator):  # noqa: N801  (reads as a verb: `with sherlorch.allow(inf=True)`)
    """A region in which non-finite values of the given classes are no fault: traps and `sherlorch run` let them pass.

    It holds for the thread that enters it, and adds up where regions nest. `diagnose` still tells
    who made them.

        with sherlorch.allow(inf=True):
            weights = 1 / counts  # zero counts are meant to give infinity

    Args:
        inf: Allow +Inf and -Inf.
        nan: Allow NaN.

    Raises:
        ValueError: Neither is allowed, so the region would do nothing.
    """

    def __init__(self, *, inf: bool = False, nan: bool = False) -> None:
        if not inf and not nan:
            raise ValueError("allow() allows nothing; pass inf=True, nan=True or both")
        self._classes = (bool(inf), bool(nan))

    @completes
    def __enter__(self) -> Self:
        with _regions_lock:
            _regions.setdefault(threading.current_thread().name, []).append(self._classes)
        return self

    @completes
    def __exit__(self, *exc_info: object) -> None:
        name = threading.current_thread().name
        with _regions_lock:
            _regions[name].remove(self._classes)
            if not _regions[name]:
                del _regions[name]


def allowed_here(thread_name: str = "", *, inf: bool, nan: bool) -> bool:
    """True if values of these classes are allowed now in that thread ("" is the main thread)."""
    name = thread_name or threading.main_thread().name
    with _regions_lock:
        stack = list(_regions.get(name, ()))
    return bool(stack) and (
        (not inf or any(region[0] for region in stack)) and (not nan or any(region[1] for region in stack))
    )


def _allowed(culprit: Culprit) -> bool:
    thread = str(culprit.extra.get("thread_name") or "")
    return allowed_here(thread, inf=culprit.has_inf, nan=culprit.has_nan)


def at_fault(report: DiagnosisReport, suppressions: Suppressions) -> list[Culprit]:
    """The culprits of a report that no region allows and no suppression covers."""
    return [culprit for culprit in report.culprits if not suppressions.cover(culprit) and not _allowed(culprit)]


class Trap:
    """The native tracker's callback. The recorder's own trouble is logged and never reaches the program."""

    def __init__(self, native: _native.Tracker, on_culprit: OnCulprit, suppressions: Suppressions) -> None:
        self._native = native
        self._on_culprit = on_culprit
        self._suppressions = suppressions
        self.armed = False

    def __call__(self, diagnosis: _native.Diagnosis) -> None:
        found = self._read(diagnosis)
        if found is None:
            return
        if _inside_unbreakable():
            late.append(functools.partial(self._act, *found))
        else:
            self._act(*found)

    def _act(self, report: DiagnosisReport, culprit: Culprit) -> None:
        if self._on_culprit == "warn":
            _warn(report, culprit)
        elif callable(self._on_culprit):
            # What the user's function computes springs nothing.
            self._native.set_trap(None)
            try:
                self._on_culprit(report)
            finally:
                if self.armed:
                    self._native.set_trap(self)
        else:
            raise NonFiniteError(report, culprit)

    def _read(self, diagnosis: _native.Diagnosis) -> tuple[DiagnosisReport, Culprit] | None:
        try:
            report = DiagnosisReport._from_native(diagnosis)
            guilty = at_fault(report, self._suppressions)
        except Exception:
            logging.getLogger("sherlorch").exception("a trapped diagnosis could not be read")
            return None
        return (report, guilty[-1]) if guilty else None


class ExactLines(TorchFunctionMode):
    """Has each torch call of the main thread return through a call of Python's, so that a trap springs on its line.

    CPython runs pending calls after a call and not after an operator: without this, `a / b` would be raised on a later
    line. Costs about two microseconds a torch call, and changes nothing of it.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _warn(report: DiagnosisReport, culprit: Culprit) -> None:
    file, _, line = (culprit.location or "").rpartition(":")
    message = report.verdict(culprit)
    if file:
        warnings.warn_explicit(message, RuntimeWarning, file, int(line))
    else:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
