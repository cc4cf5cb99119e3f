"""on_culprit, trap(), allow() and ignore."""

# ruff: noqa: PT012 (what is tested is which statement of the block raises)
from __future__ import annotations

import inspect
import pickle
import threading
import traceback
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import cast

import pytest
import sherlorch
import torch
from conftest import Run
from torch import nn


def _line() -> int:
    return cast(FrameType, cast(FrameType, inspect.currentframe()).f_back).f_lineno


def _own_lines(error: BaseException) -> list[int]:
    """The lines of this file in the error's traceback, outermost first."""
    return [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]


def test_raise_stops_on_the_line_of_a_call() -> None:
    reached = False
    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        x = torch.zeros(3)
        line = _line() + 1
        x.log()
        reached = True
    assert not reached
    assert _own_lines(caught.value)[-1] == line
    error = caught.value
    assert isinstance(error, FloatingPointError)
    assert isinstance(error.report, sherlorch.DiagnosisReport)
    assert error.culprit.op_name == "log"
    assert error.culprit.location == f"{__file__}:{line}"
    assert f"{__file__}:{line}" in str(error)
    assert "\n" not in str(error)


def test_raise_stops_on_the_line_of_an_operator() -> None:
    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        x = torch.zeros(3)
        line = _line() + 1
        y = 1 / x
        z = y + 1
        torch.relu(z)
    assert _own_lines(caught.value)[-1] == line
    assert caught.value.culprit.location == f"{__file__}:{line}"


def test_raise_stops_inside_of_a_function_and_a_module() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x).log()

    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap() as tracker:
        model = Net()
        tracker.watch(model)
        model(torch.ones(1))
    assert caught.value.culprit.module_path == "model"
    assert "in model" in str(caught.value)
    assert not model._forward_pre_hooks
    assert "not recording" in repr(tracker)


def test_raise_stops_on_the_last_line_of_the_block_and_leaves_nothing_behind() -> None:
    model = nn.Linear(1, 1)
    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap() as tracker:
        tracker.watch(model)
        x = torch.zeros(1)
        line = _line() + 1
        x / x
    assert caught.value.culprit.location == f"{__file__}:{line}"
    assert not model._forward_pre_hooks
    assert "not recording" in repr(tracker)
    torch.zeros(1).log()  # no trap any more


def test_raise_stops_in_backward() -> None:
    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        x = torch.zeros(1, requires_grad=True)
        line = _line() + 1
        y = x.sqrt() * 0
        backward_line = _line() + 1
        y.sum().backward()
    assert caught.value.culprit.phase == "backward"
    assert caught.value.culprit.location == f"{__file__}:{line}"
    assert _own_lines(caught.value)[-1] == backward_line
    assert "backward" in str(caught.value)


def test_raise_stops_in_a_python_backward() -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            nothing = grad - grad
            return nothing.log()

    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        x = torch.ones(1, requires_grad=True)
        Bad.apply(x).sum().backward()
    source, first = inspect.getsourcelines(Bad.backward)
    line = first + next(number for number, text in enumerate(source) if "nothing.log()" in text)
    assert caught.value.culprit.location == f"{__file__}:{line}"
    assert line in _own_lines(caught.value)


def test_deliberate_infinities_and_absorbed_ones_do_not_spring_it() -> None:
    with sherlorch.trap():
        mask = torch.full((3, 3), float("-inf")).triu(1)
        torch.softmax(torch.ones(3, 3) + mask, dim=-1).sum()


def test_the_program_can_catch_it_and_go_on() -> None:
    caught = 0
    with sherlorch.trap():
        for value in (0.0, 1.0, 0.0):
            try:
                torch.tensor([value]).log()
            except FloatingPointError:
                caught += 1
    assert caught == 2


def test_warn_warns_at_the_line_and_goes_on() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with sherlorch.trace(on_culprit="warn"):
            line = _line() + 1
            y = torch.zeros(1).log()
            y.sum()
    (warning,) = [warning for warning in seen if "log" in str(warning.message)]
    assert issubclass(warning.category, RuntimeWarning)
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_a_callable_gets_each_report_on_the_main_thread() -> None:
    seen: list[tuple[str, str]] = []

    def note(report: sherlorch.DiagnosisReport) -> None:
        torch.zeros(1).log()  # what it computes itself springs nothing
        seen.append((report.culprits[-1].op_name, threading.current_thread().name))

    with sherlorch.trace(on_culprit=note):
        torch.zeros(1).log()
        torch.zeros(1).sqrt()
        torch.full((1,), -1.0).sqrt()
    main = threading.main_thread().name
    assert seen == [("log", main), ("sqrt", main)]


def test_what_a_callable_raises_reaches_the_line() -> None:
    def stop(report: sherlorch.DiagnosisReport) -> None:
        raise LookupError(report.verdict())

    with pytest.raises(LookupError, match="log") as caught, sherlorch.trace(on_culprit=stop):
        line = _line() + 1
        torch.zeros(1).log()
    assert line in _own_lines(caught.value)


def test_record_is_the_default_and_raises_nothing() -> None:
    with sherlorch.trace() as tracker:
        y = torch.zeros(1).log()
    assert not tracker.diagnose(y).ok


def test_allow_lets_its_classes_pass_and_no_others() -> None:
    with sherlorch.trap():
        with sherlorch.allow(inf=True):
            torch.zeros(1).log()
            with sherlorch.allow(nan=True):
                torch.full((1,), -1.0).log()
        with pytest.raises(sherlorch.NonFiniteError):
            torch.zeros(1).log()
        with pytest.raises(sherlorch.NonFiniteError), sherlorch.allow(inf=True):
            torch.full((1,), -1.0).log()


def test_allow_covers_the_last_line_of_its_block() -> None:
    with sherlorch.trap():
        zero = torch.zeros(1)
        with sherlorch.allow(inf=True):
            y = 1 / zero
        assert y.numel() == 1


def test_allow_is_a_decorator_and_ends_with_an_exception() -> None:
    @sherlorch.allow(inf=True)
    def weights(counts: torch.Tensor) -> torch.Tensor:
        return 1 / counts

    with sherlorch.trap():
        weights(torch.zeros(2))
        with pytest.raises(KeyError), sherlorch.allow(inf=True):
            raise KeyError
        with pytest.raises(sherlorch.NonFiniteError):
            torch.zeros(1).log()


def test_allow_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="allows nothing"):
        sherlorch.allow()
    with pytest.raises(TypeError):
        sherlorch.allow(True)


def test_allow_holds_for_its_own_thread_only() -> None:
    entered, leave = threading.Event(), threading.Event()

    def elsewhere() -> None:
        with sherlorch.allow(inf=True, nan=True):
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    entered.wait(20)
    try:
        with pytest.raises(sherlorch.NonFiniteError), sherlorch.trap():
            torch.zeros(1).log()
    finally:
        leave.set()
        thread.join()


def test_allow_works_on_the_thread_that_enters_it() -> None:
    def run(name: str, region: AbstractContextManager[object]) -> None:
        done, leave = threading.Event(), threading.Event()

        def work() -> None:
            with region:
                torch.zeros(1).log()
                done.set()
                leave.wait(20)

        thread = threading.Thread(target=work, name=name)
        try:
            with sherlorch.trap():
                thread.start()
                done.wait(20)
                sum(range(1000))  # here the trap springs
        finally:
            leave.set()
            thread.join()

    run("allows", sherlorch.allow(inf=True))
    with pytest.raises(sherlorch.NonFiniteError):
        run("does not", nullcontext())


def test_allow_does_not_hide_anything_from_diagnose() -> None:
    with sherlorch.trace() as tracker, sherlorch.allow(inf=True):
        y = torch.zeros(1).log()
    assert tracker.diagnose(y).culprits[0].op_name == "log"


@pytest.mark.parametrize(
    "entry",
    [
        "aten::log",
        "log",
        "aten::lo*",
        f"file:{__file__}",
        f"file:{Path(__file__).name}",
        "file:*/test_trap.py",
        "module:*",
    ],
)
def test_ignore_lets_ops_files_and_modules_pass(entry: str) -> None:
    with sherlorch.trap(ignore=[entry]):
        nn.Sequential(_Log())(torch.zeros(1))


class _Log(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.log()


@pytest.mark.parametrize("entry", ["aten::sqrt", "file:other.py", "module:encoder.*", f"file:{Path(__file__).name}:1"])
def test_ignore_lets_nothing_else_pass(entry: str) -> None:
    with pytest.raises(sherlorch.NonFiniteError), sherlorch.trap(ignore=[entry]):
        torch.zeros(1).log()


def test_ignore_by_line() -> None:
    here = Path(__file__).name
    with sherlorch.trap(ignore=[f"file:{here}:{_line() + 1}"]):
        torch.zeros(1).log()


def test_ignore_by_module() -> None:
    model = nn.Sequential(nn.Identity(), _Log())
    with sherlorch.trap(ignore=["module:net.1"]) as tracker:
        tracker.watch(model, "net")
        model(torch.zeros(1))
    with pytest.raises(sherlorch.NonFiniteError), sherlorch.trap(ignore=["module:net.0"]) as tracker:
        tracker.watch(model, "net")
        model(torch.zeros(1))


def test_an_op_of_another_thread_is_told_to_the_main_thread() -> None:
    def work() -> None:
        torch.zeros(1).log()

    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        sum(range(1000))
    assert caught.value.culprit.op_name == "log"


def test_the_error_can_be_pickled() -> None:
    with pytest.raises(sherlorch.NonFiniteError) as caught, sherlorch.trap():
        torch.zeros(1).log()
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert str(again.report) == str(caught.value.report)


def test_uncaught_it_ends_the_program_with_its_verdict(python: Run, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import torch, sherlorch\nwith sherlorch.trap():\n    x = torch.zeros(1)\n    y = x.log()\n    print('no')\n"
    )
    ran = python("p.py")
    assert ran.returncode == 1
    assert ran.stdout == ""
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("sherlorch._errors.NonFiniteError: ")
    assert "p.py:4" in last
    assert "y = x.log()" in ran.stderr
