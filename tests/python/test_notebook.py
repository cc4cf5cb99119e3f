"""`%%sherlorch` in a real IPython shell."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")

from collections.abc import Iterator
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance(colors="NoColor")
    shell.reset(new_session=False)
    shell.run_line_magic("load_ext", "sherlorch")
    yield shell
    shell.run_line_magic("unload_ext", "sherlorch")
    InteractiveShell.clear_instance()


def _cell(shell: Any, text: str) -> str:
    with capture_output() as captured:
        shell.run_cell(text)
    return captured.stdout + captured.stderr


def test_the_cells_value_is_explained_with_the_cells_line_number(shell: Any) -> None:
    out = _cell(shell, "%%sherlorch\nimport torch\nx = torch.zeros(2)\ny = x.log()\ny.sum()")
    assert "the cell's value is non-finite" in out
    assert "at In[1], line 4" in out
    assert ":4" in out
    assert "y = x.log()" in out


def test_a_variable_a_gradient_and_an_exception_are_explained(shell: Any) -> None:
    out = _cell(shell, "%%sherlorch\nimport torch\nbad = torch.zeros(2).log()\nprint('ran')")
    assert "ran" in out
    assert "bad is non-finite" in out
    out = _cell(shell, "%%sherlorch\nw = torch.zeros(1, requires_grad=True)\n(w.sqrt() * 0).sum().backward()")
    assert "w.grad is non-finite" in out
    out = _cell(shell, "%%sherlorch\ndef f(t):\n    u = t.log()\n    raise KeyError('x')\nf(torch.zeros(1))")
    assert "KeyError" in out
    assert "u in f() is non-finite" in out


def test_watch_and_target(shell: Any) -> None:
    _cell(shell, "import torch\nnet = torch.nn.Sequential(torch.nn.Identity())\nfine = torch.ones(1)")
    out = _cell(shell, "%%sherlorch --watch net --target z\nz = net(torch.zeros(1)).log()")
    assert "z is non-finite" in out
    assert "non-finite" not in _cell(
        shell, "%%sherlorch --target fine\nfine = torch.ones(1)\nother = torch.zeros(1).log()"
    )


def test_a_clean_cell_shows_nothing(shell: Any) -> None:
    assert _cell(shell, "%%sherlorch\nimport torch\nx = torch.ones(2).log()\nNone") == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nonsense", "does not know"),
        ("--watch nowhere", "no nn.Module of that name"),
        ("--target nothing", "leaves no tensor of that name"),
        ("--watch", "does not know"),
    ],
)
def test_wrong_uses_are_one_line(shell: Any, line: str, message: str) -> None:
    out = _cell(shell, f"%%sherlorch {line}\n1 + 1")
    assert "UsageError" in out
    assert message in out
