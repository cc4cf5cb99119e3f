"""The tracer as Python sees it: a context manager around the native recorder."""

from __future__ import annotations

import functools
import operator
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self

import torch

from sherlorch import _eager, _native
from sherlorch._errors import UntrackedTensorError
from sherlorch._nodes import OpNode, node_from_step
from sherlorch._report import DiagnosisReport, also_written
from sherlorch._suppress import Suppressions
from sherlorch._trap import ExactLines, OnCulprit, Trap, act_late, check_on_culprit, keeps_traps_waiting, late
from sherlorch._watch import Watched, name_all, name_gradients, name_tensors
from sherlorch._wrapped import tensors_inside

P = ParamSpec("P")
CompileMode = Literal["eager", "trace_opaque"]
_NONE = Suppressions()
_watching = threading.Lock()  # of the watched models of all trackers

_native.set_eager_prepare(_eager.prepare)


def _dtypes(check_dtypes: torch.dtype | Iterable[torch.dtype] | None) -> list[torch.dtype] | None:
    if check_dtypes is None:
        return None
    dtypes = [check_dtypes] if isinstance(check_dtypes, torch.dtype) else list(check_dtypes)
    for dtype in dtypes:
        if not isinstance(dtype, torch.dtype):
            raise TypeError(
                f"check_dtypes has an entry {dtype!r} of type {type(dtype).__name__}; entries are "
                "dtypes like torch.float32"
            )
    return dtypes


def _check_tensor(value: object) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, got {type(value).__name__}; pass the tensor that turned non-finite")


class ProvenanceTracker:
    """Records which op wrote what, and tells where a NaN or an infinity came from.

    A context manager: ops that run on any thread inside of the `with` block are recorded, forward, backward and
    optimizer. It can be entered again (what it has recorded stays), nested in itself and in others, and used from
    several threads; recording ends when the last `with` is left. `diagnose` also works after that.

    Cost: about a microsecond an op, and one scan of what it wrote, at memory speed. The process grows by the recorder's
    fixed size, and by what is kept of non-finite values.

    Args:
        capture_stack: Give each op its `location`, and culprits their Python stack.
        check_dtypes: Look only at tensors of these dtypes. None: at every floating and complex
            type.
        fast_shape_ops: Do not scan the outputs of ops that write nothing (views); the diagnoses are the same. False:
            scan everything.
        module_paths: Give each op the path of the nn.Module that ran it: by qualified name for a
            watched model, and from the outermost module that ran for others.
        compile: "eager": functions compiled by torch.compile run eagerly inside the trace, so that
            their ops are seen. "trace_opaque": they stay compiled, and the report counts what it
            could not see.
        on_culprit: What to do when an op makes a non-finite value by accident. "record": nothing.
            "raise": raise NonFiniteError right after the op. "warn": a RuntimeWarning at the op's
            line. A function: call it with the report, on the main thread.
        sample: Less than 1: of tensors of 16 MiB or more scan only this share of what an op writes
            (1/16: one block of 4 KiB in 16, the same ones every time). A bad value in the rest
            shows at the first op that makes a bad value of it, and the report then names the op
            before as a suspect; it counts the tensors that were looked at in part. Bad values that
            fill 1/sample blocks without a gap are never missed.
        keep_operands: Copy what an in-place op is about to overwrite, so that its values can be among
            the witnesses ("log(0.0) = -inf" of `x.log_()`). Costs a copy of each such operand for
            as long as the op runs: an optimizer's step copies all parameters and moments.
        ignore: What `on_culprit` lets pass: operators ("aten::log"), modules ("module:encoder.*"),
            files ("file:*/legacy/*.py"), with `*` and `?` as in file names.

    Raises:
        TypeError: An entry of `check_dtypes` is no dtype, or `ignore` is no list of strings.
        ValueError: `compile` or `on_culprit` is not one of the above, `sample` is not in (0, 1], or
            an entry of `ignore` names nothing.
    """

    # Some programs make a tracker for each step, and its code and data are then in no cache. So what most trackers have
    # in common is kept here, and set where it differs.
    capture_stack: bool = True
    fast_shape_ops: bool = True
    _opaque = False  # compiled functions stay compiled
    _suppressions = _NONE
    _trap: Trap | None = None
    _watched: Sequence[Watched] = ()
    _named: Sequence[Watched] = ()  # those that are watched no more too: a question may come later
    _special = False  # it has a trap, or watches a model: entering and leaving it is more than to start and to stop
    # What stays compiled is not to be traced through one more mode.
    _exact = False
    _modes: Sequence[ExactLines] = ()  # of the main thread

    def __init__(
        self,
        capture_stack: bool = True,
        check_dtypes: torch.dtype | Iterable[torch.dtype] | None = None,
        fast_shape_ops: bool = True,
        *,
        module_paths: bool = True,
        compile: CompileMode = "eager",
        on_culprit: OnCulprit = "record",
        sample: float = 1.0,
        keep_operands: bool = False,
        ignore: Iterable[str] = (),
    ) -> None:
        dtypes = _dtypes(check_dtypes)
        if compile not in ("eager", "trace_opaque"):
            raise ValueError(f"compile={compile!r} is not known; use 'eager' or 'trace_opaque'")
        if not 0 < sample <= 1:
            raise ValueError(f"sample={sample!r} is no share; give a number above 0 and up to 1, like 1/16")
        check_on_culprit(on_culprit)
        self._native = _native.Tracker(
            bool(capture_stack),
            dtypes,
            not fast_shape_ops,  # scan_everything
            bool(module_paths),
            float(sample),
            bool(keep_operands),
            compile == "eager",
        )
        self.capture_stack = bool(capture_stack)
        self.fast_shape_ops = bool(fast_shape_ops)
        self._opaque = compile == "trace_opaque"
        self._suppressions = _NONE if ignore == () else Suppressions(ignore)
        if on_culprit != "record":
            self._special = True
            self._trap = Trap(self._native, on_culprit, self._suppressions)
            # What stays compiled is not to be traced through one more mode.
            self._exact = on_culprit != "warn" and compile == "eager"

    @keeps_traps_waiting
    def __enter__(self) -> Self:
        try:
            begun = self._native.start()
            if begun == 2 or self._special:
                self._begin(begun)
            return self
        finally:
            if late:
                act_late()

    @keeps_traps_waiting
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._special:
                self._end()
            else:
                self._native.stop()
        finally:
            if late:
                act_late()

    def _begin(self, begun: int) -> None:
        if begun == 2:
            self._native.add_blind_spot(
                "compiled", 1, "the trace was entered inside of a compiled function: compiled functions stayed compiled"
            )
        if begun and self._trap is not None:
            self._trap.armed = True
            self._native.set_trap(self._trap)
        if self._exact and threading.current_thread() is threading.main_thread():
            mode = ExactLines()
            mode.__enter__()  # type: ignore[no-untyped-call]
            self._modes = [*self._modes, mode]

    def _end(self) -> None:
        if self._modes and threading.current_thread() is threading.main_thread():
            *rest, mode = self._modes
            self._modes = rest
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        if not self._native.stop():
            return
        if self._trap is not None:
            self._trap.armed = False
            self._native.set_trap(None)
        if self._watched:
            with _watching:
                self._release()

    def _release(self) -> None:
        watched, self._watched = self._watched, ()
        for model in watched:
            model.release()

    def watch(self, model: torch.nn.Module, name: str = "model") -> Self:
        """Give the modules of `model` their qualified names, so that ops show as `[model.encoder.layer3]`.

        The model is held weakly. Submodules that are replaced or added later are noticed when the
        model is called. The one hook on the model is gone after `unwatch` or the end of the trace;
        a copy or a pickle of the model made meanwhile works, also where sherlorch is not installed.
        Several models can be watched.

        Args:
            model: The model, or a part of one.
            name: What to call it.

        Returns:
            The tracker.

        Raises:
            TypeError: `model` is not an nn.Module.
        """
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"watch() takes a torch.nn.Module, got {type(model).__name__}; pass the model itself")
        watched = Watched(model, name, self._name_all, compiled=self._opaque)
        with _watching:
            self._special = True
            self._watched = [*self._watched, watched]
            self._named = [*self._named, watched]
        self._name_all()
        return self

    def _name_all(self) -> None:
        name_all(self._native, self._watched)
        name_tensors(self._native, self._named)

    def unwatch(self) -> None:
        """Take the hooks off all watched models; ops from here on get no module path."""
        with _watching:
            self._release()
        self._native.unname_modules()

    def enable(self) -> None:
        """Record again after `disable`."""
        self._native.enable()

    def disable(self) -> None:
        """Record nothing until `enable`, without leaving the `with` block (e.g. in warm-up steps)."""
        self._native.disable()

    def reset(self) -> None:
        """Forget what was recorded. Not needed to bound memory: the recorder has a fixed size."""
        self._native.reset()

    @property
    def op_count(self) -> int:
        """How many ops were recorded since the tracker was made or reset."""
        return self._native.op_count

    def has_issue(self, tensor: torch.Tensor) -> bool:
        """True if the tensor holds a NaN or an infinity now, tracked or not.

        False for a tensor whose memory can't be read: on another device than the CPU, meta, opaque.

        Cost: one scan at memory speed.

        Raises:
            TypeError: It is not a tensor.
        """
        _check_tensor(tensor)
        return _native.has_issue(tensor) or any(_native.has_issue(each) for each in tensors_inside(tensor))

    def diagnose(self, tensor: torch.Tensor, index: Sequence[int] | None = None) -> DiagnosisReport:
        """Find the ops that first made the tensor non-finite.

        Args:
            tensor: A tensor that was written or read in the trace; also a view of one, a gradient,
                a parameter.
            index: Ask about this one element only: one number a dimension, negative ones count from
                the end.

        Returns:
            The report; `report.ok` if nobody is to blame.

        Raises:
            UntrackedTensorError: The trace never saw this tensor; the message says why, and what to
                do.
            TypeError: `tensor` is not a tensor.
            IndexError: `index` does not name an element of it.
        """
        _check_tensor(tensor)
        element = None if index is None else _element(tensor, index)
        if self._named:
            # Parameters change hands (`.data`, swaps): only what is still so was so.
            name_tensors(self._native, self._named)
            name_gradients(self._native, self._named)
        return DiagnosisReport._from_native(self._diagnose(tensor, element))

    def bystanders(self, tensor: torch.Tensor, limit: int = 100) -> list[OpNode]:
        """What was seen and did not matter: ops that made something non-finite which does not reach the tensor.

        A value that nothing alive descends from is forgotten, and with it the op that made it.

        Args:
            tensor: As for `diagnose`.
            limit: The newest so many are told.

        Returns:
            The ops, oldest first.

        Raises:
            UntrackedTensorError: The tensor can't be read.
            TypeError: `tensor` is not a tensor.
        """
        _check_tensor(tensor)
        try:
            return [node_from_step(step) for step in self._native.bystanders(tensor, limit)]
        except _native.UntrackedTensor as error:
            raise UntrackedTensorError(*error.args) from None

    def _diagnose(self, tensor: torch.Tensor, element: tuple[int, ...] | None) -> _native.Diagnosis:
        try:
            return self._native.diagnose(tensor, element)
        except _native.UntrackedTensor as error:
            # A wrapper has no memory of its own: the first bad tensor inside of it answers, or else the first.
            inside = [] if element is not None else tensors_inside(tensor)
            bad = [each for each in inside if _native.has_issue(each)]
            for each in bad or inside:
                return self._diagnose(each, None)
            raise UntrackedTensorError(*error.args) from None

    def to_chrome_trace(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """The last ops that the flight recorder holds, for ui.perfetto.dev and chrome://tracing.

        Each op is a slice on its thread's track, with line, module and phase; a counter shows the
        largest magnitude that it wrote, and a mark the first non-finite op. The axis is the order of
        the ops, not time.

        Args:
            path: Where to write it, whole or not at all; None: nowhere.
            overwrite: Replace a file that is there.

        Returns:
            The trace in Chrome's JSON format.

        Raises:
            FileExistsError: `path` exists and `overwrite` is False.
            OSError: `path` can't be written.
        """
        return also_written(self._native.to_chrome_trace(), path, overwrite=overwrite)

    def _get_node(self, tensor: torch.Tensor) -> OpNode | None:
        step = self._native.node_of(tensor)
        return None if step is None else node_from_step(step)

    def __repr__(self) -> str:
        state = "recording" if self._native.active else "not recording"
        return f"<ProvenanceTracker: {state}, {self.op_count} ops>"

    def __reduce__(self) -> Any:
        raise TypeError("a ProvenanceTracker can't be copied or pickled; pickle the report of diagnose()")


def _element(tensor: torch.Tensor, index: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(tensor.shape)
    try:
        element = tuple(operator.index(number) for number in index)
    except TypeError:
        raise IndexError(f"index={index!r} is not a sequence of whole numbers") from None
    if len(element) != len(shape) or any(
        not -size <= number < size for number, size in zip(element, shape, strict=True)
    ):
        raise IndexError(
            f"index={element!r} names no element of a tensor of shape {shape}; give one number a dimension, "
            "each smaller than its size"
        )
    return tuple(number % size for number, size in zip(element, shape, strict=True))


def _quick_without_arguments(make: Callable[P, ProvenanceTracker]) -> Callable[P, ProvenanceTracker]:
    """As `make`, and as little Python code as can be where it is called without arguments (see ProvenanceTracker)."""

    @functools.wraps(make)
    def run(*args: P.args, **kwargs: P.kwargs) -> ProvenanceTracker:
        if args or kwargs:
            return make(*args, **kwargs)
        tracker = ProvenanceTracker.__new__(ProvenanceTracker)
        tracker._native = _native.Tracker()
        return tracker

    return run


@_quick_without_arguments
def trace(
    capture_stack: bool = True,
    check_dtypes: torch.dtype | Iterable[torch.dtype] | None = None,
    fast_shape_ops: bool = True,
    *,
    module_paths: bool = True,
    compile: CompileMode = "eager",
    on_culprit: OnCulprit = "record",
    sample: float = 1.0,
    keep_operands: bool = False,
    ignore: Iterable[str] = (),
) -> ProvenanceTracker:
    """A new tracker: `with sherlorch.trace() as tracker: ...`. Arguments and errors as for ProvenanceTracker."""
    return ProvenanceTracker(
        capture_stack,
        check_dtypes,
        fast_shape_ops,
        module_paths=module_paths,
        compile=compile,
        on_culprit=on_culprit,
        sample=sample,
        keep_operands=keep_operands,
        ignore=ignore,
    )


def trap(*, ignore: Iterable[str] = (), compile: CompileMode = "eager") -> ProvenanceTracker:
    """Stop at the first op that makes a non-finite value by accident: `trace(on_culprit="raise")`.

        with sherlorch.trap():
            train()  # NonFiniteError on the line of the op

    Args:
        ignore: What to let pass; see ProvenanceTracker.
        compile: What to do with compiled functions; see ProvenanceTracker.

    Raises:
        NonFiniteError: Inside of the block, right after the op; it has the `report` and the
            `culprit`.
    """
    return ProvenanceTracker(on_culprit="raise", ignore=ignore, compile=compile)
